"""How much real time needs, and how much batch may have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy

from inference_decisions.capacity_shift.demand_history import DemandHistory
from inference_decisions.capacity_shift.deployment_rule import DeploymentRule
from inference_decisions.capacity_shift.pool_allocation import (
    STAY_HANDOVERS,
    Allocation,
    RoleDemand,
    allocate,
)
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
    for deployment in _with_horizons(view):
        if deployment.batch_only:
            continue
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
    pools: list[PoolDecision] = []
    for pool in view.pools:
        if not pool.shared:
            pools.append(_pool(pool, view.deployments, by_name))
            continue
        users = [each for each in view.deployments if each.pool == pool.name]
        of_pool = _SharedPoolRule(pool, users, before, settings, now)
        found, decided = of_pool.decided(by_name, states)
        pools.append(found)
        by_name.update({each.name: each for each in decided})
    return ShiftDecision(
        decided_at=now,
        carried_out=settings.action == "shift" and settings.freeze != "frozen",
        deployments=tuple(by_name[each.name] for each in view.deployments if each.name in by_name),
        pools=tuple(pools),
        state=ShiftState(decided_at=now, deployments=states),
    )


def _with_horizons(view: CellView) -> Iterator[DeploymentView]:
    """Yield the deployments. Where a node of a shared pool is missing, hand-overs have the start of one."""
    missing = {each.name for each in view.pools if each.shared and _lacks_node(each, view.deployments)}
    for each in view.deployments:
        if each.pool in missing and each.new_node_seconds is not None and each.handover_seconds is not None:
            yield replace(each, handover_seconds=max(each.handover_seconds, each.new_node_seconds))
        else:
            yield each


def _lacks_node(pool: PoolView, deployments: Iterable[DeploymentView]) -> bool:
    """Return whether replicas use so few nodes that another one may have to start."""
    if pool.always is None:
        return False
    used = sum(each.replicas * each.accelerators for each in deployments if each.pool == pool.name)
    node = max(1, pool.accelerators_per_node)
    # What the pool lacks to whole nodes belongs to fixed workers, whose nodes run.
    fixed = -pool.accelerators % node
    running = math.ceil((used + fixed) / node) * node - fixed
    return max(pool.always, running) < pool.accelerators


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


@dataclass(frozen=True, slots=True)
class _SharedPoolRule:
    """Decides about a pool that models share by the hour, after the rules of its roles."""

    pool: PoolView
    users: Sequence[DeploymentView]
    before: ShiftState
    settings: ShiftSettings
    now: float

    def decided(
        self, decisions: Mapping[str, DeploymentDecision], states: dict[str, DeploymentState]
    ) -> tuple[PoolDecision, list[DeploymentDecision]]:
        """Return the decision about the pool and those about its roles. The states are completed.

        decisions: What the rules of real time's roles ask for.
        states: States of these roles.
        """
        if self.settings.freeze == "frozen":
            return self._frozen(decisions, states)
        live = [decisions[each.name] for each in self.users if not each.batch_only]
        blind = [each.name for each in live if _is_blind(each)]
        unlearnt = [each.name for each in live if any(reason.code == "no_history" for reason in each.reasons)]
        demands = [
            RoleDemand(
                view=each,
                wanted=0,
                most=self._most(each, blind or unlearnt),
                due=self._due(each),
                stays=self._stays(each),
            )
            if each.batch_only
            else RoleDemand(view=each, wanted=decisions[each.name].floor, blind=each.name in blind)
            for each in self.users
        ]
        found = allocate(self.pool, demands)
        decided = []
        for each in self.users:
            floor, ceiling = found.floors[each.name], found.ceilings[each.name]
            if each.batch_only:
                decision = self._of_batch(each, floor)
                states[each.name] = DeploymentState(
                    floor=floor, ceiling=ceiling, grown_at=self._grown_at(each, floor)
                )
            else:
                asked = decisions[each.name]
                decision = replace(asked, floor=floor, reasons=(*asked.reasons, *found.reasons[each.name]))
                states[each.name] = replace(states[each.name], floor=floor, ceiling=ceiling)
            decided.append(replace(decision, ceiling=ceiling, drain_order=found.order[each.name]))
        return self._of_pool(found, blind), decided

    def _frozen(
        self, decisions: Mapping[str, DeploymentDecision], states: dict[str, DeploymentState]
    ) -> tuple[PoolDecision, list[DeploymentDecision]]:
        """Return what was decided before."""
        decided = []
        batch = 0
        for each in self.users:
            known = self.before.deployments.get(each.name) or DeploymentState(floor=each.replicas)
            states[each.name] = known
            reason = ShiftReason("frozen", "people froze the shift: the number stays as it is")
            decision = self._answer(each, known.floor, reason) if each.batch_only else decisions[each.name]
            batch += known.floor * each.accelerators if each.batch_only else 0
            decided.append(replace(decision, floor=known.floor, ceiling=known.ceiling))
        reason = ShiftReason("frozen", "people froze the shift: roles keep what they have")
        return PoolDecision(name=self.pool.name, batch_accelerators=batch, reasons=(reason,)), decided

    def _most(self, view: DeploymentView, waits: Sequence[str]) -> int | None:
        """Return the replicas of batch that may be given now. None for no limit but the range.

        waits: Roles of real time whose demand is not known.
        """
        if waits:
            return view.minimum
        known = self.before.deployments.get(view.name)
        if known is None:
            return view.replicas
        clock_went_back = self.now < self.before.decided_at
        return known.floor if clock_went_back or self.settings.freeze == "unknown" else None

    def _due(self, view: DeploymentView) -> int:
        """Return what deadlines need. If that is not known, nobody takes what the role has."""
        if view.deadline_replicas is not None:
            return view.deadline_replicas
        known = self.before.deployments.get(view.name)
        return known.floor if known else view.replicas

    def _stays(self, view: DeploymentView) -> int:
        known = self.before.deployments.get(view.name)
        if known is None or known.grown_at is None:
            return 0
        stay = STAY_HANDOVERS * self._handover(view)
        return known.floor if 0 <= self.now - known.grown_at < stay else 0

    def _grown_at(self, view: DeploymentView, floor: int) -> float | None:
        known = self.before.deployments.get(view.name)
        if known is None or floor > known.floor:
            return self.now if floor else None
        return known.grown_at if floor else None

    def _handover(self, view: DeploymentView) -> float:
        return self.settings.reclaim_seconds if view.handover_seconds is None else view.handover_seconds

    def _of_batch(self, view: DeploymentView, floor: int) -> DeploymentDecision:
        needed = view.deadline_replicas
        if needed is None:
            text = f"batch does not say what its deadlines need: it keeps what it has, {floor} replicas now"
            return self._answer(view, floor, ShiftReason("deadlines_unknown", text))
        text = f"real time leaves it {floor} replicas; its deadlines need {needed}"
        if needed > view.maximum:
            text += f", and its maximum is {view.maximum}"
        return self._answer(view, floor, ShiftReason("gives_way" if floor < needed else "batch_rest", text))

    def _answer(self, view: DeploymentView, floor: int, reason: ShiftReason) -> DeploymentDecision:
        observed = ShiftReason("observe", "capacityShift.action is `observe`: this is only recorded")
        return DeploymentDecision(
            name=view.name,
            floor=floor,
            # Without a worker, a running job keeps one place all the same.
            batch_places=math.ceil(view.batch_places * floor / view.maximum) if view.maximum else 0,
            lent=0.0,
            reasons=(reason, observed) if self.settings.action == "observe" else (reason,),
            forecast=None,
        )

    def _of_pool(self, found: Allocation, blind: Sequence[str]) -> PoolDecision:
        def sum_of(users: Iterable[DeploymentView]) -> int:
            return sum(found.floors[each.name] * each.accelerators for each in users)

        batch = sum_of(each for each in self.users if each.batch_only)
        kept = sum_of(each for each in self.users if not each.batch_only)
        losers = [name for name, reasons in found.reasons.items() if reasons]
        text = f"real time keeps {kept} of {self.pool.accelerators} accelerators, batch has {batch}"
        reasons = [ShiftReason("forecast" if batch else "nothing_to_lend", text)]
        if blind:
            text = f"no recent demand of {', '.join(blind)}: batch gets nothing"
            reasons = [ShiftReason("metrics_missing", text)]
        if losers:
            reasons.append(ShiftReason("pool_too_small", f"{', '.join(losers)} got less than they want"))
        return PoolDecision(name=self.pool.name, batch_accelerators=batch, reasons=tuple(reasons))
