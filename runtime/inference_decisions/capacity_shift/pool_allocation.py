"""Divides a pool that models share by the hour among their roles, in whole replicas.

Real time comes first: minimums, then floors by priority, and roles of one priority get an equal share of what
they want. Roles that serve batch alone get the rest: first what their deadlines need, then what does most for
an accelerator. What nobody wants raises ceilings, so that the load may bring further workers. All ceilings
together fit the pool and its nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inference_decisions.capacity_shift.shift_answer import ShiftReason
from inference_decisions.capacity_shift.shift_view import DeploymentView, PoolView

#: A role of batch keeps what it got for as many of its hand-overs, unless real time or a deadline needs it:
#: a hand-over serves nobody.
STAY_HANDOVERS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleDemand:
    """What a role asks for."""

    view: DeploymentView
    wanted: int
    """Floor that its forecast asks for, within its range. Not used of roles that serve batch alone."""
    blind: bool = False
    """Whether its demand is not known. Then it gets more than it has only from what the others leave."""
    most: int | None = None
    """Replicas that a role which serves batch alone may have now, such as those of before while the freeze
    switch cannot be read. None for its maximum."""
    due: int = 0
    """Replicas that the deadlines of a role that serves batch alone need."""
    stays: int = 0
    """Replicas that a role which serves batch alone got too recently to give them to another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What the roles of a pool get."""

    floors: Mapping[str, int]
    """Replicas by the name of the role."""
    ceilings: Mapping[str, int]
    """Replicas by the name of the role. A role that serves batch alone has its floor as its ceiling."""
    order: Mapping[str, int]
    """Place in the order in which roles are changed, from 0."""
    reasons: Mapping[str, Sequence[ShiftReason]]
    """Who lost what, by the name of the role."""


def allocate(pool: PoolView, roles: Sequence[RoleDemand]) -> Allocation:
    """Return what each role gets.

    roles: All roles that may move in the pool.
    """
    nodes = _Nodes(pool)
    live = sorted((each for each in roles if not each.view.batch_only), key=lambda each: -each.view.priority)
    batch = [each for each in roles if each.view.batch_only]
    got: Counter[str] = Counter()
    lend = _Lending(nodes, {each.view.name: each.view.accelerators for each in roles}, got)
    for each in (*live, *batch):
        lend.up_to(each.view.name, each.view.minimum)
    for wanted in (_known, _all):
        for priority in sorted({each.view.priority for each in live}, reverse=True):
            lend.equally({each.view.name: wanted(each) for each in live if each.view.priority == priority})
    reasons = {each.view.name: list(_lost(pool, each, got, live)) for each in live}
    floors = dict(got)
    # Workers above a floor end before batch gets their accelerators.
    for each in live:
        lend.up_to(each.view.name, min(each.view.replicas, each.view.maximum))
    running = dict(got)
    _lend_batch(lend, batch)
    floors.update({each.view.name: got[each.view.name] for each in batch})
    ceilings = Counter({**floors, **{each.view.name: got[each.view.name] for each in batch}})
    rest = _Lending(nodes, lend.sizes, ceilings)
    # What runs above a floor may stay where batch does not want it.
    wants_more = any(got[each.view.name] < _most(each) for each in batch)
    if not wants_more:
        for each in live:
            rest.up_to(each.view.name, running[each.view.name])
        rest.equally({each.view.name: each.view.maximum for each in live})
    return Allocation(
        floors={each.view.name: floors.get(each.view.name, 0) for each in roles},
        ceilings={each.view.name: ceilings[each.view.name] for each in roles},
        order=_order(roles, ceilings),
        reasons=reasons,
    )


def _known(role: RoleDemand) -> int:
    """Return what a role needs for certain: without recent demand, what it has."""
    return min(role.wanted, max(role.view.minimum, role.view.replicas)) if role.blind else role.wanted


def _all(role: RoleDemand) -> int:
    return role.wanted


def _most(role: RoleDemand) -> int:
    maximum = role.view.maximum
    return maximum if role.most is None else min(maximum, max(role.view.minimum, role.most))


def _lend_batch(lend: _Lending, batch: Sequence[RoleDemand]) -> None:
    """Give roles of batch what their deadlines need, then what they have just got, then the rest."""
    urgent = sorted(batch, key=lambda each: (-each.view.priority, each.view.name))
    for each in urgent:
        lend.up_to(each.view.name, min(each.due, _most(each)))
    useful = sorted(urgent, key=lambda each: -each.view.tokens_per_accelerator_hour)
    for each in useful:
        lend.up_to(each.view.name, min(each.stays, _most(each)))
    for each in useful:
        lend.up_to(each.view.name, _most(each))


def _lost(
    pool: PoolView, role: RoleDemand, got: Mapping[str, int], live: Sequence[RoleDemand]
) -> Sequence[ShiftReason]:
    """Return why a role has less than it wants."""
    name, missing = role.view.name, role.wanted - got[role.view.name]
    if missing <= 0:
        return ()
    before = [each for each in live if each is not role and each.view.priority >= role.view.priority]
    text = (
        f"{role.wanted} replicas are wanted, and {got[name]} fit: of {pool.accelerators} accelerators, roles "
        f"with priority {role.view.priority} or more have "
        f"{sum(got[each.view.name] * each.view.accelerators for each in before)} beside it"
    )
    return (ShiftReason("gives_way", text),)


def _order(roles: Sequence[RoleDemand], ceilings: Mapping[str, int]) -> Mapping[str, int]:
    """Return the order of the changes: what stops first, batch before real time and low before high."""

    def place(role: RoleDemand) -> tuple[bool, bool, int, str]:
        view = role.view
        stops = ceilings[view.name] < view.replicas
        return (
            not stops,
            view.batch_only != stops,
            view.priority if stops else -view.priority,
            view.name,
        )

    return {each.view.name: number for number, each in enumerate(sorted(roles, key=place))}


class _Lending:
    """Gives replicas as long as they fit.

    got: What each role has. It is changed.
    """

    def __init__(self, nodes: _Nodes, sizes: Mapping[str, int], got: Counter[str]) -> None:
        self._nodes, self.sizes, self._got = nodes, sizes, got

    def up_to(self, name: str, wanted: int) -> None:
        """Give a role as many replicas of what it wants as fit."""
        low, high = self._got[name], max(self._got[name], wanted)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(name, middle) else (low, middle - 1)
        self._got[name] = low

    def equally(self, wanted: Mapping[str, int]) -> None:
        """Give roles what they want; if it does not fit, an equal share of it."""
        if len(wanted) == 1 or self._all_fit(wanted):
            for name, number in wanted.items():
                self.up_to(name, number)
            return
        open_ = {name for name, number in wanted.items() if self._got[name] < number}
        while open_:
            name = min(open_, key=lambda each: (self._got[each] / wanted[each], each))
            if self._fits(name, self._got[name] + 1):
                self._got[name] += 1
            else:
                open_.discard(name)
            if self._got[name] >= wanted[name]:
                open_.discard(name)

    def _all_fit(self, wanted: Mapping[str, int]) -> bool:
        return self._nodes.hold(
            self._by_size({name: max(self._got[name], number) for name, number in wanted.items()})
        )

    def _fits(self, name: str, number: int) -> bool:
        return self._nodes.hold(self._by_size({name: number}))

    def _by_size(self, changed: Mapping[str, int]) -> Counter[int]:
        found: Counter[int] = Counter()
        for name, number in {**self._got, **changed}.items():
            found[self.sizes[name]] += number
        return found


class _Nodes:
    """The nodes of a pool, which hold whole replicas."""

    def __init__(self, pool: PoolView) -> None:
        self._size = pool.accelerators_per_node or max(1, pool.accelerators)
        self._free = Counter({self._size: pool.accelerators // self._size})
        if rest := pool.accelerators % self._size:
            self._free[rest] += 1

    def hold(self, replicas: Mapping[int, int]) -> bool:
        """Return whether replicas fit, by their accelerators. Large ones come first, on the fullest nodes.

        For sizes of which each divides the next larger one and the node, as 1, 2, 4 and 8 do, this finds a
        place whenever there is one. For others it may find none, but never one that does not exist.
        """
        free = Counter(self._free)
        return all(self._place(free, size, replicas[size]) for size in sorted(replicas, reverse=True))

    def _place(self, free: Counter[int], size: int, number: int) -> bool:
        if size > self._size:
            nodes = math.ceil(size / self._size) * number
            free[self._size] -= nodes
            return free[self._size] >= 0
        for space in sorted(each for each, nodes in free.items() if nodes > 0 and each >= size):
            if number <= 0:
                break
            each = space // size
            full = min(free[space], number // each)
            free[space] -= full
            free[space - each * size] += full
            number -= full * each
            if 0 < number < each and free[space] > 0:
                free[space] -= 1
                free[space - number * size] += 1
                number = 0
        return number <= 0
