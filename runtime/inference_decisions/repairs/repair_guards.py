"""Whether a node may be taken out of service now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from inference_contracts.health_names import Remedy
from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.live_node import LiveNode
from inference_decisions.repairs.repair_case import RepairCase


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """What is known about the pool of a case, and about the cell."""

    pool: str
    nodes: int
    """Nodes of the pool that have joined."""
    unhealthy: int
    """Nodes of the pool that are not ready, or whose case is confirmed, in flight or of the same cause
    (`has_same_cause`). With this one."""
    in_flight: int
    """Other nodes of the pool that are being replaced."""
    started_last_hour: int
    """Replacements that started in the cell within the last hour, without this one."""
    metrics_at: float
    """End of the newest window that workers reported, in seconds since the epoch."""
    counted: tuple[str, ...] = ()
    """Each of them with its reason, for people."""
    shifted: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    """Racks, groups of peers and pools that moved together: unit and name of each `Shift`."""
    reboots: int = 0
    """How often the node of the case was rebooted within a day."""


#: The reason of the breaker.
TOO_MANY_UNHEALTHY: Final = "too_many_unhealthy"
#: Reasons that stop a repair at any step. A drain that one of them held has its whole time again afterwards.
HOLDS: Final = frozenset({"frozen", "observe", TOO_MANY_UNHEALTHY})
#: As many unhealthy nodes never hold a pool of three or more, so that a small pool can be repaired: one node
#: after the other, because one is replaced at a time. Not all nodes of a pool: that is no single fault.
_ALWAYS_FEW: Final = 2
#: Within how many seconds the same kind of fault on several nodes has one cause. An alarm is evaluated each
#: minute, and some wait ten minutes before they are raised.
_SAME_CAUSE_SECONDS: Final = 900.0
#: Nodes that a message names.
_NAMED: Final = 20

#: ``wait``: asked again at the next decision. ``refuse``: people have to act.
GuardOutcome = Literal["allow", "wait", "refuse"]


@dataclass(frozen=True, slots=True)
class GuardAnswer:
    """Whether a node may be taken out of service."""

    outcome: GuardOutcome
    """One of `GuardOutcome`."""
    reason: str
    """Code of the reason."""
    text: str
    """The reason in words, for people."""


def guard(
    case: RepairCase, live: LiveNode, fleet: FleetView, settings: HealthSettings, now: float
) -> GuardAnswer:
    """Return whether a node may be taken out of service now.

    case: A case that is proved.
    live: The node, read just now.
    fleet: Its pool and cell.
    settings: Limits.
    now: Seconds since the epoch.
    """
    for check in (_switched, _owned, _replaceable, _alone, _limited):
        answer = check(case, live, fleet, settings, now)
        if answer is not None:
            return answer
    return GuardAnswer("allow", "allowed", "every guard allows it")


def remedy(case: RepairCase, fleet: FleetView, settings: HealthSettings) -> Remedy:
    """Return what is done about the faults of a case: what mends all of them, as the table of faults says.

    A node that was rebooted often enough is replaced.
    """
    decisive = [each for each in case.evidence if each.fatal] or case.evidence
    found = {settings.faults.remedy(each.kind, each.code) for each in decisive}
    if "person" in found:
        return "person"
    if found == {"reboot"} and fleet.reboots < settings.reboots_per_node_per_day:
        return "reboot"
    return "replace"


def no_place(live: LiveNode) -> GuardAnswer | None:
    """Return that no other instance can take the node's place: its reservation is full."""
    if live.purchase in ("capacity_block", "reservation") and not live.spare:
        return GuardAnswer(
            "refuse", "no_spare", f"the node's {live.purchase.replace('_', ' ')} has no place for another one"
        )
    return None


def stopped(settings: HealthSettings) -> GuardAnswer | None:
    """Return why no act is allowed at all: people froze it, or it only observes."""
    if settings.frozen:
        return GuardAnswer("wait", "frozen", "replacements are frozen")
    if settings.action == "observe":
        return GuardAnswer("wait", "observe", "gpuHealth.action is `observe`: it is only recorded")
    return None


def moved_together(case: RepairCase, live: LiveNode, fleet: FleetView) -> GuardAnswer | None:
    """Return that the rack, the pool or a group of peers moved together, unless the hardware is at fault."""
    units = [("rack", live.rack), ("pool", live.pool), *(("peers", name) for name in sorted(live.peers))]
    for unit, name in units:
        if name and not case.fatal and (unit, name) in fleet.shifted:
            whole = f"group of peers `{name}`" if unit == "peers" else f"{unit} `{name}`"
            return GuardAnswer("wait", f"{unit}_shift", f"the whole {whole} moved together")
    return None


def breaker(fleet: FleetView, settings: HealthSettings) -> GuardAnswer | None:
    """Return that too many nodes of the pool are unhealthy for replacements to be the remedy.

    One unhealthy node is always few, and so are two of three or more: 5 % of 16 nodes is less than one.
    """
    minimum = max(1, min(_ALWAYS_FEW, fleet.nodes - 1))
    maximum = max(minimum, int(fleet.nodes * settings.max_unhealthy_percent / 100))
    if fleet.unhealthy <= maximum:
        return None
    named = [*fleet.counted[:_NAMED], *(["…"] if len(fleet.counted) > _NAMED else [])]
    return GuardAnswer(
        "wait",
        "too_many_unhealthy",
        f"{fleet.unhealthy} of {fleet.nodes} nodes of pool `{fleet.pool}` are unhealthy, more than {maximum}"
        f" (gpuHealth.maxUnhealthyPercent: {settings.max_unhealthy_percent:g})"
        + "".join(f"\n- {each}" for each in named),
    )


def has_same_cause(case: RepairCase, other: RepairCase) -> bool:
    """Return whether another node was seen with the same kind of fault at about the same time.

    Such a node counts for the breaker before its own fault is proved: when many nodes break at once, the
    first whose fault is proved must not be replaced as if it were alone. If a fault is fatal, only its kind
    counts.

    case: The case that wants to go on.
    other: An open case of another node of the pool.
    """
    decisive = [each for each in case.evidence if each.fatal] or case.evidence
    return any(
        each.kind == seen.kind and abs(each.at - seen.at) <= _SAME_CAUSE_SECONDS
        for each in decisive
        for seen in other.evidence
    )


def _switched(
    case: RepairCase, live: LiveNode, fleet: FleetView, settings: HealthSettings, now: float
) -> GuardAnswer | None:
    del case, live, fleet, now
    return stopped(settings)


def _owned(
    case: RepairCase, live: LiveNode, fleet: FleetView, settings: HealthSettings, now: float
) -> GuardAnswer | None:
    del fleet, now
    owner = settings.repaired_by.get(case.pool, "karpenter")
    if owner != "gpuHealth":
        return GuardAnswer("refuse", "another_owner", f"`repairedBy` of pool `{case.pool}` is `{owner}`")
    if live.owner == "none":
        return GuardAnswer("refuse", "no_owner", "no NodeClaim and no Auto Scaling group owns the node")
    if live.cordoned and not live.cordoned_by_us:
        return GuardAnswer("wait", "cordoned_by_others", "somebody else cordoned the node")
    return None


def _replaceable(
    case: RepairCase, live: LiveNode, fleet: FleetView, settings: HealthSettings, now: float
) -> GuardAnswer | None:
    del now
    wanted = remedy(case, fleet, settings)
    if wanted == "person":
        return GuardAnswer("refuse", "needs_people", "neither a reboot nor another node mends the fault")
    if wanted == "replace" and (answer := no_place(live)) is not None:
        return answer
    if fleet.nodes <= 1 and not case.fatal:
        return GuardAnswer("refuse", "last_node", f"it is the only node of pool `{case.pool}`, and it serves")
    return None


def _alone(
    case: RepairCase, live: LiveNode, fleet: FleetView, settings: HealthSettings, now: float
) -> GuardAnswer | None:
    if not case.fatal and now - fleet.metrics_at > settings.stale_seconds:
        return GuardAnswer(
            "wait", "metrics_missing", f"no worker has reported for {now - fleet.metrics_at:.0f} s"
        )
    return moved_together(case, live, fleet)


def _limited(
    case: RepairCase, live: LiveNode, fleet: FleetView, settings: HealthSettings, now: float
) -> GuardAnswer | None:
    del case, live, now
    if (answer := breaker(fleet, settings)) is not None:
        return answer
    if fleet.in_flight >= settings.places(fleet.nodes):
        return GuardAnswer(
            "wait", "in_flight", f"{fleet.in_flight} other nodes of pool `{fleet.pool}` are being repaired"
        )
    if fleet.started_last_hour >= settings.replacements_per_hour:
        return GuardAnswer(
            "wait",
            "hourly_cap",
            f"{fleet.started_last_hour} replacements started within an hour"
            f" (gpuHealth.replacementsPerHour: {settings.replacements_per_hour})",
        )
    return None
