"""A pool that models share by the hour, over the days of traces: what each way to run it needs (simulated).

Each way has the same objectives: at most 0.1 % of each role's demand is missed, and batch keeps its
deadlines. A way is worth what it needs for that: the smallest pool, or the hours that it pays for. It is
tuned on the first days and counted on the others. Replicas are whole. What is on its way between two roles
serves nobody, in both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy
from numpy.lib.stride_tricks import sliding_window_view

from inference_contracts.records import dataclass
from inference_contracts.units import MINUTES_PER_DAY, MINUTES_PER_HOUR
from inference_decisions.capacity_shift.demand_history import Numbers
from inference_decisions.capacity_shift.replica_forecast import (
    forecast_replicas,
    handover_bins,
    largest_of_last,
    smallest_before,
)

PoolWay = Literal["clairvoyant bound", "shift", "one-line rule", "schedule", "elastic fleets", "fixed fleets"]
#: Share of the demand that each role may miss.
MISSED_GOAL = 0.001
#: Use of a fleet that batch has for itself: jobs come and go.
_FLEET_USE = 0.85
#: What the rivals are tuned by: minutes that the rule looks back, and multiples.
_MINUTES = (1, 2, 3, 5, 10, 20)
_MULTIPLES = tuple(1.0 + number / 50.0 for number in range(101))
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRole:
    """A role of real time on the pool."""

    name: str
    values: Numbers
    """Demand in bins of a minute."""
    capacity: float
    """Demand that one replica serves."""
    accelerators: int
    """Accelerators of one replica."""
    minimum: int
    maximum: int
    """`minimum`, `maximum`: Range of replicas. Demand above the maximum does not count."""
    handover_seconds: float
    """Time until a replica has taken the place of another role's."""
    new_node_seconds: float
    """Time until a replica serves on a node that has to start: what a fleet of its own takes."""
    priority: int = 0

    @property
    def bins(self) -> int:
        """Minutes of a hand-over."""
        return handover_bins(self.handover_seconds)

    def whole(self, demand: Numbers) -> Numbers:
        """Return the replicas for a demand, within the range."""
        found: Numbers = numpy.clip(
            numpy.ceil(demand / self.capacity - _TOLERANCE), self.minimum, self.maximum
        )
        return found

    def missed(self, replicas: Numbers, counted: slice) -> float:
        """Return the share of the demand that replicas do not serve, from 0 to 1."""
        needed = numpy.minimum(self.values, self.maximum * self.capacity)[counted]
        missing = numpy.maximum(0.0, needed - replicas[counted] * self.capacity)
        total = float(needed.sum())
        return float(missing.sum()) / total if total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedBatch:
    """Work of a queue on the pool."""

    name: str
    work: Numbers
    """Accelerator-minutes that arrive in each minute."""
    deadline_minutes: int
    """Minutes until work must be done."""
    accelerators: int
    """Accelerators of one replica."""
    maximum: int
    """Most replicas."""
    handover_seconds: float
    """Time until a replica that batch gets serves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDays:
    """What the ways are compared on."""

    roles: Sequence[PoolRole]
    """Roles of real time."""
    batch: Sequence[SimulatedBatch]
    """Queues, the shortest deadline first."""
    learnt: int
    """Minutes that are only learnt from."""
    tuned: int
    """Minutes after which nothing is tuned any more. What follows is counted."""

    @property
    def known(self) -> slice:
        """The minutes on which ways are tuned."""
        return slice(self.learnt if self.learnt < self.tuned else 0, self.tuned)

    @property
    def counted(self) -> slice:
        """The minutes that are counted."""
        return slice(self.tuned, len(self.roles[0].values))


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOutcome:
    """What a way needs."""

    way: PoolWay
    accelerators: float
    """Accelerators that it pays for: those of the pool, or on average those of fleets."""
    of_bound: float
    """The same, as a multiple of the clairvoyant bound's."""
    missed: Mapping[str, float]
    """Share of the demand that was missed by role, from 0 to 1."""
    late: float
    """Share of batch's work that came after its deadline, from 0 to 1."""
    settings: str
    """What it was tuned to, in words. Empty if nothing is tuned."""

    @property
    def worst(self) -> float:
        """The largest share that a role missed."""
        return max(self.missed.values())

    @property
    def keeps(self) -> bool:
        """Whether all objectives are kept."""
        return self.worst <= MISSED_GOAL and self.late <= _TOLERANCE


def simulated_pool(days: PoolDays) -> Iterator[PoolOutcome]:
    """Yield what each way needs on the counted days, the bound first."""
    bound = _smallest(days, "clairvoyant bound", _ahead(days), "", knows=True)
    yield bound
    rule, rule_words = _tuned(days, _reactive, _MINUTES)
    schedule, schedule_words = _tuned(days, _scheduled, (0,))
    for found in (
        _smallest(days, "shift", _forecast(days), ""),
        _smallest(days, "one-line rule", rule, rule_words),
        _smallest(days, "schedule", schedule, schedule_words),
        _elastic(days),
        _fixed(days),
    ):
        yield replace(found, of_bound=found.accelerators / bound.accelerators)


def pool_of_size(days: PoolDays, size: int) -> PoolOutcome:
    """Return what the shift does with a pool of a size."""
    return _in_pool(days, "shift", _forecast(days), "", size)


_Floors = Sequence[Numbers]


def _forecast(days: PoolDays) -> _Floors:
    return [
        forecast_replicas(
            each.values,
            handover_seconds=each.handover_seconds,
            capacity=each.capacity,
            minimum=each.minimum,
            maximum=each.maximum,
        ).replicas
        for each in days.roles
    ]


def _ahead(days: PoolDays) -> _Floors:
    """Return what demand needs within a hand-over from each minute on: nobody knows it before."""
    found = []
    for each in days.roles:
        needed = each.whole(each.values)
        padded = numpy.concatenate([needed, numpy.full(each.bins, needed[-1])])
        found.append(sliding_window_view(padded, each.bins + 1).max(axis=1))
    return found


def _reactive(role: PoolRole, minutes: int, multiple: float) -> Numbers:
    return role.whole(multiple * largest_of_last(role.values, minutes))


def _scheduled(role: PoolRole, _minutes: int, multiple: float) -> Numbers:
    """Return a multiple of the largest demand of each hour on the days before, from a quarter before it."""
    largest = numpy.zeros((MINUTES_PER_DAY // MINUTES_PER_HOUR,))
    needed = numpy.full(len(role.values), role.values.max())
    for start in range(0, len(role.values), MINUTES_PER_HOUR):
        hour = start // MINUTES_PER_HOUR % len(largest)
        if start >= MINUTES_PER_DAY:
            needed[start : start + MINUTES_PER_HOUR] = largest[hour]
        largest[hour] = max(largest[hour], role.values[start : start + MINUTES_PER_HOUR].max())
    ahead = numpy.concatenate([needed[MINUTES_PER_HOUR // 4 :], needed[-(MINUTES_PER_HOUR // 4) :]])
    return role.whole(multiple * numpy.maximum(needed, ahead))


_Keep = Callable[[PoolRole, int, float], Numbers]


def _tuned(days: PoolDays, keep: _Keep, minutes: Sequence[int], *, own: bool = False) -> tuple[_Floors, str]:
    """Return the floors of a way that keeps few replicas and misses no more than it may on known days.

    own: Whether each role has a fleet of its own, whose nodes have to start.
    """
    floors, words = [], []
    for role in days.roles:
        bins = handover_bins(role.new_node_seconds if own else role.handover_seconds)

        def rank(setting: tuple[int, float], role: PoolRole = role, bins: int = bins) -> tuple[float, float]:
            held = keep(role, *setting)
            missed = role.missed(smallest_before(held, bins + 1), days.known)
            return max(0.0, missed - MISSED_GOAL), float(held[days.known].mean())

        best = min((_least(rank, each) for each in minutes), key=rank)
        floors.append(keep(role, *best))
        words.append(f"{role.name}: {best[1]:g} x" + (f" of {best[0]} min" if best[0] else ""))
    return floors, ", ".join(words)


def _least(rank: Callable[[tuple[int, float]], tuple[float, float]], minutes: int) -> tuple[int, float]:
    """Return the smallest multiple that misses no more than it may, or the largest one."""
    low, high = 0, len(_MULTIPLES) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if rank((minutes, _MULTIPLES[middle]))[0] <= 0.0 else (middle + 1, high)
    return minutes, _MULTIPLES[low]


def _smallest(
    days: PoolDays, way: PoolWay, floors: _Floors, settings: str, *, knows: bool = False
) -> PoolOutcome:
    """Return the smallest pool in which a way keeps the objectives, or misses no more than in any pool.

    knows: Whether the floors are held before they are needed.
    """
    most = sum(each.maximum * each.accelerators for each in days.roles)
    most += sum(each.maximum * each.accelerators for each in days.batch)
    largest = _in_pool(days, way, floors, settings, most, knows=knows)

    def enough(found: PoolOutcome) -> bool:
        return found.late <= largest.late + _TOLERANCE and all(
            missed <= max(MISSED_GOAL, largest.missed[name]) + _TOLERANCE
            for name, missed in found.missed.items()
        )

    low, high, best = 1, most, largest
    while low < high:
        middle = (low + high) // 2
        found = _in_pool(days, way, floors, settings, middle, knows=knows)
        if enough(found):
            high, best = middle, found
        else:
            low = middle + 1
    return best


def _in_pool(
    days: PoolDays, way: PoolWay, floors: _Floors, settings: str, size: int, *, knows: bool = False
) -> PoolOutcome:
    """Return what comes of floors in a pool: minimums first, then priority. Batch has the rest."""
    granted: dict[str, Numbers] = {}
    left = numpy.full(len(days.roles[0].values), float(size))
    left -= sum(each.minimum * each.accelerators for each in days.roles)
    missed = {}
    rest = numpy.full(len(left), float(size))
    for role, wanted in sorted(zip(days.roles, floors, strict=True), key=lambda each: -each[0].priority):
        more = numpy.minimum(wanted - role.minimum, numpy.maximum(0.0, left) // role.accelerators)
        granted[role.name] = role.minimum + more
        left -= more * role.accelerators
        ahead = role.bins + 1
        served = granted[role.name] if knows else smallest_before(granted[role.name], ahead)
        taken = granted[role.name] if knows else -smallest_before(-granted[role.name], ahead)
        missed[role.name] = role.missed(served, days.counted)
        rest -= taken * role.accelerators
    if (left < 0).any():
        missed = dict.fromkeys(missed, 1.0)
    return PoolOutcome(
        way=way,
        accelerators=float(size),
        of_bound=1.0,
        missed=missed,
        late=_late(days, numpy.maximum(0.0, rest), starts=not knows),
        settings=settings,
    )


def _late(days: PoolDays, rest: Numbers, *, starts: bool) -> float:
    """Return the share of batch's work on counted days that is not done by its deadline.

    rest: Accelerators that batch has. Queues with shorter deadlines come first.
    starts: Whether replicas that batch gets have to start.
    """
    counted = days.counted
    late = total = 0.0
    for queue in days.batch:
        replicas = numpy.minimum(float(queue.maximum), rest // queue.accelerators)
        if starts:
            replicas = numpy.minimum(
                replicas, smallest_before(replicas, handover_bins(queue.handover_seconds))
            )
        can = (replicas * queue.accelerators)[counted]
        arrived = queue.work[counted].cumsum()
        able = can.cumsum()
        # What is done by a time: all that arrived, unless capacity since an earlier time did not suffice.
        done = able + numpy.minimum(0.0, numpy.minimum.accumulate(arrived - able))
        due = arrived[: max(0, len(arrived) - queue.deadline_minutes)]
        short = due - done[queue.deadline_minutes : queue.deadline_minutes + len(due)]
        late += max(0.0, float(short.max(initial=0.0)))
        # A pool that falls behind a little each day would be late after more days than these.
        late += max(0.0, float(arrived[-1] - able[-1]))
        total += float(arrived[-1])
        rest = rest.copy()
        rest[counted] -= numpy.diff(done, prepend=0.0)
        rest = numpy.maximum(0.0, rest)
    return late / total if total else 0.0


def _fixed(days: PoolDays) -> PoolOutcome:
    """Return what fleets of a fixed size need: one for each role, and one for batch at 85 % of its time."""
    accelerators, missed = 0.0, {}
    for role in days.roles:
        sizes = range(role.minimum, role.maximum + 1)
        number = next(
            (
                each
                for each in sizes
                if role.missed(numpy.full(len(role.values), float(each)), days.counted) <= MISSED_GOAL
            ),
            role.maximum,
        )
        missed[role.name] = role.missed(numpy.full(len(role.values), float(number)), days.counted)
        accelerators += number * role.accelerators
    for queue in days.batch:
        alone = replace(days, batch=(replace(queue, maximum=10**9, accelerators=1),))
        low, high = 1, max(1, int(numpy.ceil(queue.work.max() / _FLEET_USE / queue.accelerators)))
        while low < high:
            middle = (low + high) // 2
            can = numpy.full(len(queue.work), _FLEET_USE * middle * queue.accelerators)
            late = _late(alone, can, starts=False)
            low, high = (low, middle) if late <= _TOLERANCE else (middle + 1, high)
        accelerators += low * queue.accelerators
    return PoolOutcome(
        way="fixed fleets", accelerators=accelerators, of_bound=1.0, missed=missed, late=0.0, settings=""
    )


def _elastic(days: PoolDays) -> PoolOutcome:
    """Return what fleets need that follow the one-line rule, start nodes and are paid by the started hour."""
    floors, words = _tuned(days, _reactive, _MINUTES, own=True)
    paid, missed = 0.0, {}
    for role, held in zip(days.roles, floors, strict=True):
        ahead = handover_bins(role.new_node_seconds) + 1
        missed[role.name] = role.missed(smallest_before(held, ahead), days.counted)
        taken = -smallest_before(-held, ahead)[days.counted]
        hours = [taken[start : start + MINUTES_PER_HOUR] for start in range(0, len(taken), MINUTES_PER_HOUR)]
        paid += role.accelerators * float(numpy.mean([each.max() for each in hours]))
    minutes = days.counted.stop - days.counted.start
    paid += sum(float(each.work[days.counted].sum()) for each in days.batch) / minutes / _FLEET_USE
    return PoolOutcome(
        way="elastic fleets", accelerators=paid, of_bound=1.0, missed=missed, late=0.0, settings=words
    )
