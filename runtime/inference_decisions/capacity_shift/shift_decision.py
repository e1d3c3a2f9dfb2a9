"""How much real time needs, and how much batch may have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy

from inference_decisions.capacity_shift.demand_history import DemandHistory
from inference_decisions.capacity_shift.deployment_rule import DeploymentRule
from inference_decisions.capacity_shift.shift_answer import (
    DeploymentDecision,
    PoolDecision,
    ShiftDecision,
    ShiftReason,
)
from inference_decisions.capacity_shift.shift_view import (
    CellView,
    DeploymentState,
    DeploymentView,
    PoolView,
    ShiftSettings,
    ShiftState,
)

_NO_HISTORY = DemandHistory(0, numpy.empty(0))


def decide(
    histories: Mapping[str, DemandHistory],
    view: CellView,
    state: ShiftState | None,
    settings: ShiftSettings,
    now: float,
) -> ShiftDecision:
    """Return the floors of real time, and what batch may have.

    histories: Demand of each deployment by its name in the view. One that is missing counts as without
        metrics.
    view: What runs now.
    state: State of the last decision. None if there was none, or if it was lost.
    settings: Section of the blueprint, freeze switch and limits.
    now: Seconds since the epoch.
    """
    before = state or ShiftState(decided_at=now)
    decisions: list[DeploymentDecision] = []
    states: dict[str, DeploymentState] = {}
    for deployment in view.deployments:
        rule = DeploymentRule(
            deployment=deployment,
            history=histories.get(deployment.name, _NO_HISTORY).until(now),
            before=before.deployments.get(deployment.name),
            elapsed_seconds=now - before.decided_at,
            settings=settings,
            now=now,
        )
        decision, states[deployment.name] = rule.decided()
        decisions.append(decision)
    by_name = {decision.name: decision for decision in decisions}
    return ShiftDecision(
        decided_at=now,
        carried_out=settings.action == "shift" and settings.freeze != "frozen",
        deployments=tuple(decisions),
        pools=tuple(_pool(pool, view.deployments, by_name) for pool in view.pools),
        state=ShiftState(decided_at=now, deployments=states),
    )


def _pool(
    pool: PoolView, deployments: tuple[DeploymentView, ...], decisions: Mapping[str, DeploymentDecision]
) -> PoolDecision:
    """Return what batch's own workers may have: all that neither floors nor running replicas need."""
    users = [each for each in deployments if each.pool == pool.name]
    blind = [each.name for each in users if _is_blind(decisions[each.name])]
    kept = sum(max(each.replicas, decisions[each.name].floor) * each.accelerators for each in users)
    floors = sum(decisions[each.name].floor * each.accelerators for each in users)
    if blind:
        reason = ShiftReason("metrics_missing", f"no recent demand of {', '.join(blind)}: batch gets nothing")
        return PoolDecision(name=pool.name, batch_accelerators=0, reasons=(reason,))
    if floors > pool.accelerators:
        reason = ShiftReason(
            "pool_too_small", f"floors need {floors} accelerators, the pool has {pool.accelerators}"
        )
        return PoolDecision(name=pool.name, batch_accelerators=0, reasons=(reason,))
    left = max(0, pool.accelerators - kept)
    text = f"real time keeps {kept} of {pool.accelerators} accelerators (floors: {floors})"
    reason = ShiftReason("forecast" if left else "nothing_to_lend", text)
    return PoolDecision(name=pool.name, batch_accelerators=left, reasons=(reason,))


def _is_blind(decision: DeploymentDecision) -> bool:
    return any(reason.code == "metrics_missing" for reason in decision.reasons)
