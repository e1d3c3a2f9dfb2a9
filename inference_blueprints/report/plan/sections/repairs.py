"""Who replaces broken nodes of a pool, and what happens to them."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.cells import few
from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.tables import TextTable
from inference_blueprints.spec.derived import karpenter_reboots
from inference_blueprints.spec.types import GpuHealth, Pool, Spec
from inference_contracts.health_names import RepairOwner
from inference_contracts.records import dataclass

_RECORDED = "recorded, and left in service"
_NOT_SEEN = "not noticed"
_REPLACED = "drained, then replaced"
_REBOOTED = "drained, then rebooted if that mends it, else replaced"
_BY_KARPENTER_WITH_REBOOTS = (
    "Karpenter drains it after 10 minutes, for at most 5, and reboots it if that clears its XID, else it "
    "replaces it"
)
_BY_OTHERS: dict[RepairOwner, str] = {
    "karpenter": "Karpenter terminates it after 10 minutes, without a drain",
    "nvSentinel": "left to the NVSentinel that you install",
    "nobody": "stays until people replace it",
}
#: On ECS, `karpenter` is the default and stands for what ECS and EC2 do themselves.
_ON_ECS: dict[RepairOwner, str] = {
    **_BY_OTHERS,
    "karpenter": "ECS replaces a Managed Instance; a group replaces a host whose EC2 status checks fail",
}


@dataclass(frozen=True, slots=True)
class RepairSummary:
    """Repairs of one pool."""

    pool: str
    owner: str
    """Who replaces its broken nodes: a value of `repairedBy`."""
    broken: str
    """What happens to a broken node."""
    slow: str
    """What happens to one whose GPUs are slow."""
    limits: str
    """How many nodes are replaced at most, as a sentence. Empty where nothing of this library replaces
    them."""


def summarise_repairs(spec: Spec) -> Iterator[RepairSummary]:
    """Yield the repairs of each pool, if the blueprint says something about them.

    spec: The blueprint's section.
    """
    health = spec.gpu_health
    if health is None and all(pool.repaired_by == "karpenter" for pool in spec.pools):
        return
    others = _ON_ECS if spec.cluster.ecs else _BY_OTHERS
    if karpenter_reboots(spec):
        others = {**others, "karpenter": _BY_KARPENTER_WITH_REBOOTS}
    for pool in spec.pools:
        owned = health is not None and pool.repaired_by == "gpuHealth"
        broken = _by_health(health, pool) if health and owned else others.get(pool.repaired_by, _RECORDED)
        slow = _slow(health, pool, owned=owned) if _compares_workers(pool) else _NOT_SEEN
        yield RepairSummary(
            pool=pool.name,
            owner=pool.repaired_by,
            broken=broken,
            slow=slow,
            limits=_limits(health) if health and owned else "",
        )


def _by_health(health: GpuHealth, pool: Pool) -> str:
    if health.action == "observe":
        return _RECORDED
    reserved = pool.purchase.capacity_block or pool.purchase.reservation
    done = _REBOOTED if health.reboots_per_node_per_day else _REPLACED
    return f"{done}, into an unused place of the reservation" if reserved else done


def _limits(health: GpuHealth) -> str:
    if health.action == "observe":
        return ""
    reboots = (
        f" A node is rebooted at most {health.reboots_per_node_per_day} times a day."
        if health.reboots_per_node_per_day
        else ""
    )
    at_once = (
        f"{health.max_repairing_percent} % of a pool's nodes, one always"
        if health.max_repairing_percent
        else "one node of a pool"
    )
    return (
        f"GPU health replaces at most {health.replacements_per_hour} nodes an hour, and none while more than "
        f"{health.max_unhealthy_percent} % of a pool's nodes are unhealthy; one node always may be, and two "
        f"in a pool of three or more. At the same time it repairs {at_once}.{reboots}"
    )


def _slow(health: GpuHealth | None, pool: Pool, *, owned: bool) -> str:
    if health is None or not health.slow_gpus:
        return _NOT_SEEN
    if not owned:
        return _RECORDED
    # The table of faults names no reboot for a slow worker.
    return _by_health(health.model_copy(update={"reboots_per_node_per_day": 0}), pool)


def _compares_workers(pool: Pool) -> bool:
    """Whether GPU health compares the pool's workers with each other: those on GPUs alone."""
    accelerators = [each.accelerator for each in pool.types]
    return any(each is not None and each.manufacturer == "nvidia" for each in accelerators)


def repairs(summary: PlanSummary) -> TextTable:
    """Return the table of repairs, which has rows if the blueprint says something about them."""
    return TextTable(
        "Broken and slow GPUs",
        ("pool", "repaired by"),
        ("a broken node", "a node with slow GPUs"),
        tuple((each.pool, each.owner, each.broken, each.slow) for each in summary[REPAIRS]),
        (
            *dict.fromkeys(each.limits for each in summary[REPAIRS] if each.limits),
            "What is broken, what is slow, and which guards hold a replacement back: docs/gpu-health.md.",
        ),
    )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield what happens to broken nodes, once for all pools that are treated alike."""
    pools: dict[str, list[str]] = {}
    for each in summary[REPAIRS]:
        pools.setdefault(f"{each.broken} ({each.owner})", []).append(each.pool)
    for broken, names in pools.items():
        yield Label.OPERATION, f"broken nodes of {few(names, ', ')}: {broken}"


REPAIRS = PlanSection("repairs", lambda basis: tuple(summarise_repairs(basis.spec)), _in_short, (repairs,))
