"""Finds the cheapest configuration that meets the objectives, with branch and bound over shapes.

More workers never hurt, and cost more. So a shape whose fewest possible workers cost no less than the best
configuration found is left out without a replay, and one that misses the objectives with all the workers
that would still be cheaper, after one. Within a shape, the fewest workers of each role are found with plenty
of the other: no configuration of it has fewer. From that corner the search goes up by cost until one keeps
the objectives.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from inference_blueprints.measure.tuning.bounds import Need
from inference_blueprints.measure.tuning.candidates import TuningCandidate, WorkerShape, counts
from inference_blueprints.measure.tuning.evaluation import Evaluator

#: Numbers of workers, up to more than a pool can hold accelerators.
_GRID = counts(40_000)


@dataclass(frozen=True, slots=True)
class Bounded:
    """A shape with the minimum number of workers per role."""

    shape: WorkerShape
    needs: tuple[Need, ...]
    """Minimum workers per role, by arithmetic."""

    @property
    def corner(self) -> TuningCandidate:
        """Its cheapest possible configuration."""
        return TuningCandidate(
            self.shape, tuple(_GRID[bisect_left(_GRID, need.minimum)] for need in self.needs)
        )


@dataclass(slots=True)
class Search:
    """Searches the cheapest configuration."""

    evaluator: Evaluator
    on_shape: Callable[[WorkerShape], None] = field(default=lambda _: None)
    """Called with each shape after its search."""
    best: TuningCandidate | None = field(default=None, init=False)
    left_out: list[Bounded] = field(default_factory=list, init=False)

    def run(self, shapes: Sequence[Bounded]) -> TuningCandidate | None:
        """Return the cheapest configuration that meets the objectives; None if there is none.

        shapes: What to look at. Those for whose fewest workers the blueprint has no room are passed over, and
            those that cannot be cheaper are in `left_out`.
        """
        costing = self.evaluator.costing
        possible = [each for each in shapes if costing.has_room(each.corner)]
        for bounded in sorted(possible, key=lambda each: (costing.cost(each.corner), each.shape)):
            if self._is_worth_it(bounded.corner):
                self._look_at(bounded)
            else:
                self.left_out.append(bounded)
            self.on_shape(bounded.shape)
        return self.best

    def _look_at(self, bounded: Bounded) -> None:
        """Search one shape, beginning with the minimum workers."""
        corner = bounded.corner
        roles = range(len(corner.replicas))
        plenty = TuningCandidate(corner.shape, tuple(self._maximum(corner, role) for role in roles))
        if not self.evaluator.may_keep(plenty):
            return
        fewest = tuple(self._fewest(bounded, plenty, role) for role in roles)
        self._climb(TuningCandidate(corner.shape, fewest))

    def _maximum(self, corner: TuningCandidate, role: int) -> int:
        """Return the maximum useful workers of a role with the minimum of the other role."""
        low, high = _rung(corner, role), len(_GRID)
        beyond = _first(low + 1, high, low, lambda count: not self._is_worth_it(_with(corner, role, count)))
        return _GRID[beyond - 1]

    def _fewest(self, bounded: Bounded, plenty: TuningCandidate, role: int) -> int:
        """Return the minimum workers of a role that meet the objectives with plenty of the other role."""
        low, high = _rung(bounded.corner, role), _rung(plenty, role)
        likely = bisect_left(_GRID, bounded.needs[role].likely)
        return _GRID[
            _first(low, high, likely, lambda count: self.evaluator.keeps(_with(plenty, role, count)))
        ]

    def _climb(self, corner: TuningCandidate) -> None:
        """Replay configurations with no fewer workers than the corner, the cheapest first."""
        costing = self.evaluator.costing
        seen, waiting = {corner}, [(costing.cost(corner), corner)]
        while waiting:
            _, candidate = heapq.heappop(waiting)
            if self.evaluator.keeps(candidate):
                self.best = candidate
                return
            for larger in _next(candidate):
                if larger not in seen and self._is_worth_it(larger):
                    heapq.heappush(waiting, (costing.cost(larger), larger))
                seen.add(larger)

    def _is_worth_it(self, candidate: TuningCandidate) -> bool:
        """Whether a configuration fits the pools and is cheaper than the best one so far."""
        costing = self.evaluator.costing
        if not costing.has_room(candidate):
            return False
        return self.best is None or costing.cost(candidate) < costing.cost(self.best)


def _first(low: int, high: int, likely: int, holds: Callable[[int], bool]) -> int:
    """Return the first place of the grid, from low to below high, from which something holds; else high.

    Places around the likely one are tried first, then ever farther ones.
    """
    place, reach = min(max(likely, low), high - 1), 1
    while low < high:
        if holds(_GRID[place]):
            high, place = place, place - reach
        else:
            low, place = place + 1, place + reach
        reach *= 2
        if not low <= place < high:  # its other side is known
            place = (low + high) // 2
    return low


def _rung(candidate: TuningCandidate, role: int) -> int:
    """Return the index of a number of workers in the grid."""
    return bisect_right(_GRID, candidate.replicas[role]) - 1


def _with(candidate: TuningCandidate, role: int, count: int) -> TuningCandidate:
    """Return a configuration with another number of workers in one role."""
    replicas = list(candidate.replicas)
    replicas[role] = count
    return TuningCandidate(candidate.shape, tuple(replicas))


def _next(candidate: TuningCandidate) -> Iterator[TuningCandidate]:
    """Yield the configurations with one step more workers in one role."""
    for role in range(len(candidate.replicas)):
        yield _with(candidate, role, _GRID[_rung(candidate, role) + 1])
