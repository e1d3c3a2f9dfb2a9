"""Every kind of process of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from inference_blueprints.report.figures import ProcessSummary
from inference_blueprints.report.plan.cells import few
from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.types import Process, ServingPlan


def summarise_processes(plan: ServingPlan, *, without_pool: str | None = None) -> tuple[ProcessSummary, ...]:
    """Return every process of a plan in figures.

    without_pool: What runs the processes that have no pool. None for the system nodes.
    """
    return tuple(
        ProcessSummary(
            model=model.name,
            deployment=deployment.name,
            name=process.name,
            replicas_least=process.replicas,
            replicas=process.maximum,
            accelerators=_accelerators(process),
            nodes=process.nodes,
            pool=process.pool or without_pool,
            image=process.image,
        )
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.processes
    )


def _accelerators(process: Process) -> int:
    accelerators = process.resources.accelerators
    return process.nodes * accelerators.count if accelerators else 0


def processes(summary: PlanSummary) -> TextTable:
    return TextTable(
        "Processes",
        ("process", "pool"),
        ("replicas", "devices per replica"),
        tuple(map(_process_row, summary[PROCESSES])),
    )


def _process_row(process: ProcessSummary) -> tuple[str, ...]:
    return (
        f"{process.model}/{process.deployment}/{process.name}",
        process.pool or "system nodes",
        process.replica_range,
        _devices(process),
    )


def _devices(process: ProcessSummary) -> str:
    devices = str(process.accelerators or "-")
    return f"{devices} on {process.nodes} nodes" if process.nodes > 1 else devices


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the processes of each deployment, those with devices first."""
    groups = groupby(summary[PROCESSES], key=lambda each: (each.model, each.deployment))
    yield (
        Label.MODELS,
        few(
            f"{model}/{deployment}: "
            + ", ".join(
                f"{each.replica_range} x {each.name}{_held(each)}"
                for each in sorted(processes, key=lambda each: not each.accelerators)
            )
            for (model, deployment), processes in groups
        ),
    )


def _held(process: ProcessSummary) -> str:
    devices = (
        "1 device" if process.accelerators == 1 else f"{_devices(process).replace(' on', ' devices on')}"
    )
    if process.accelerators > 1 and process.nodes == 1:
        devices += " devices"
    return f" ({devices})" if process.accelerators else ""


PROCESSES = PlanSection(
    "processes",
    lambda basis: summarise_processes(basis.plan, without_pool="Fargate" if basis.spec.cluster.ecs else None),
    _in_short,
    (processes,),
)
