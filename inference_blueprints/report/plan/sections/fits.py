"""How many workers a node holds, and whether something else than its devices stops the next."""

from __future__ import annotations

from collections.abc import Iterable

from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.nodes.node_share import node_capacity
from inference_blueprints.serving.types import Process
from inference_catalog import InstanceType
from inference_catalog.addresses import DAEMON_PODS, PODS_PER_NODE
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class PodFit:
    """Workers of a deployment per node, and the limiting resource."""

    pool: str
    model: str
    deployment: str
    instance_type: str
    """`pool`, `model`, `deployment`, `instance_type`: The worker and the type."""
    workers_per_node: int
    limited_by: str
    """``devices``, ``vCPUs``, ``memory``, ``EFA interfaces`` or ``pods``."""
    stranded_devices: int
    """Devices of a node that stay idle because another resource is used up."""


def pod_fit(pool: str, model: str, deployment: str, process: Process, kind: InstanceType) -> PodFit:
    """Return how a deployment's workers fit one instance type.

    kind: One of the pool's types.
    """
    resources = process.resources
    devices = resources.accelerators.count if resources.accelerators else 0
    capacity = node_capacity(kind)
    # In the order in which ties are named: devices that are all used strand nothing.
    limits = {
        "devices": (kind.accelerator_count, devices),
        "vCPUs": (capacity.cpu, resources.cpu + (process.node_cache.cpu if process.node_cache else 0)),
        "memory": (
            capacity.memory_mib,
            resources.memory_mib + (process.node_cache.memory_mib if process.node_cache else 0),
        ),
        "EFA interfaces": (kind.efa_interfaces, resources.efa_interfaces),
        "pods": (PODS_PER_NODE - DAEMON_PODS, 1),
    }
    fitting = {name: available // each for name, (available, each) in limits.items() if each}
    limited_by = min(fitting, key=lambda name: fitting[name])
    maximum = fitting[limited_by]
    stranded = (fitting.get("devices", maximum) - maximum) * devices
    return PodFit(pool, model, deployment, kind.name, maximum, limited_by, stranded)


def fits(summary: PlanSummary) -> TextTable:
    return TextTable(
        "Workers per node",
        ("deployment", "instance type"),
        ("workers per node", "limited by", "idle devices"),
        tuple(map(_fit_row, summary[FITS])),
        tuple(_stranded(summary[FITS])),
    )


def _fit_row(fit: PodFit) -> tuple[str, ...]:
    return (
        f"{fit.model}/{fit.deployment}",
        fit.instance_type,
        str(fit.workers_per_node),
        fit.limited_by,
        str(fit.stranded_devices or "-"),
    )


def _stranded(fits: Iterable[PodFit]) -> Iterable[str]:
    for fit in fits:
        if fit.stranded_devices:
            yield (
                f"{fit.stranded_devices} devices of each {fit.instance_type} stay idle: "
                f"{fit.limited_by} limits "
                f"the workers of {fit.model}/{fit.deployment}."
            )


def _in_short(summary: PlanSummary) -> Iterable[ShortLine]:
    return ((Label.WARNINGS, sentence) for sentence in _stranded(summary[FITS]))


FITS = PlanSection(
    "fits",
    lambda basis: tuple(
        pod_fit(resolved.pool.name, resolved.model.name, resolved.label, process, kind)
        for resolved, process in basis.roles
        for kind in resolved.types
    ),
    _in_short,
    (fits,),
)
