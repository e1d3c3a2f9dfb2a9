"""Finds the cheapest configuration that meets the objectives, with branch and bound over shapes.

More workers never hurt, and cost more. So a shape whose fewest possible workers cost no less than the best
configuration found is left out without a replay, and one that misses the objectives with all the workers
that would still be cheaper, after one. Within a shape, the fewest workers of each role are found with plenty
of the other: no configuration of it has fewer. From that corner the search goes up by cost until one keeps
the objectives.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers
from inference_blueprints.measure.tuning.candidates import TuningCandidate, WorkerShape, counts
from inference_blueprints.measure.tuning.evaluation import Evaluator
from inference_blueprints.measure.tuning.replayed_workload import Demand
from inference_blueprints.serving.estimates.request_estimates import unique_tokens
from inference_blueprints.serving.performance import Limits, batch_share, best_within, operation, prefill_ms
from inference_blueprints.spec.types import EACH_TOKEN, FIRST_TOKEN, WHOLE_REQUEST, LatencyKind, Objective

#: The arithmetic takes requests for alike. A replay may do better by so much: one in ten requests may be as
#: late as it likes, and the objectives are of the 90th percentile or higher where this reckons with means.
OPTIMISM = 1.25
#: Lowest percentile that bounds means: half of the requests may be as late as they like under a median.
_BOUNDING = 90.0
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Need:
    """Workers that a role needs, by arithmetic."""

    minimum: int
    likely: int
    """As many do when requests are alike: where a search begins."""


def _loosest_ms(objectives: Sequence[Objective], kind: LatencyKind) -> float:
    """Return the limit of the highest percentile of a latency; infinity if none bounds the mean."""
    bounding = (each for each in objectives if each.kind == kind and each.percentile >= _BOUNDING)
    return max((each.limit_ms for each in bounding), default=math.inf)


def workers_needed(workers: SimulatedWorkers, demand: Demand, objectives: Sequence[Objective]) -> Need | None:
    """Return the number of workers of a role that meet the objectives; None if no number does.

    workers: The role; how many workers it has is of no account. Without speeds, nothing could.
    objectives: Limits on 90th and higher percentiles bound the number of workers.
    """
    profile, means = workers.profile, demand.means
    at_once = _at_once(workers, demand)
    if profile is None or at_once < 1:
        return None
    # The prompts of decode workers are read elsewhere, perhaps faster: their tokens may have the whole time.
    prefill = 0.0 if workers.role == "decode" else prefill_ms(profile, means)
    whole_ms = _loosest_ms(objectives, WHOLE_REQUEST)
    first_limit_ms = min(_loosest_ms(objectives, FIRST_TOKEN), whole_ms)
    later_tokens = max(1, means.output_tokens - 1)
    token_limit_ms = _loosest_ms(objectives, EACH_TOKEN)
    token_ms = min(token_limit_ms * OPTIMISM, (whole_ms * OPTIMISM - prefill) / later_tokens)
    if prefill > first_limit_ms * OPTIMISM:
        return None
    if workers.role == "prefill":
        share = batch_share(profile, means, math.inf, workers.settings.max_num_batched_tokens)
        each = alike = _MS / (prefill * share)
    else:
        alone = operation(profile, means, 1, step_tokens=0)
        if alone.time_per_output_token_ms > token_ms:
            return None
        step = 0 if workers.role == "decode" else workers.settings.max_num_batched_tokens
        each = best_within(
            profile, means, Limits(token_ms, math.inf), at_once, step_tokens=step
        ).requests_per_second
        likely_ms = min(token_limit_ms, (whole_ms - prefill) / later_tokens)
        limit_ms = max(likely_ms, alone.time_per_output_token_ms)
        alike = best_within(
            profile, means, Limits(limit_ms, math.inf), at_once, step_tokens=step
        ).requests_per_second
    # After the last arrival, requests may still wait for as long as the objective of the first token allows.
    tail = 1.0 + first_limit_ms / _MS / demand.seconds
    rate = means.peak_requests_per_second
    minimum = max(1, math.ceil(rate / (each * OPTIMISM * tail)))
    return Need(minimum, max(minimum, math.ceil(rate / alike)))


def _at_once(workers: SimulatedWorkers, demand: Demand) -> int:
    """Return how many mean requests a worker holds at once, with one copy of their shared prefix."""
    settings, means = workers.settings, demand.means
    own_tokens = settings.kv_blocks * settings.block_size - means.input_tokens * means.shared_prefix_ratio
    return min(settings.max_num_seqs, int(own_tokens // unique_tokens(means)))


# How far a search is, on standard error: a bar in a terminal, lines elsewhere.


@dataclass(slots=True)
class ShownProgress:
    """A bar over the kinds of configuration."""

    bar: Progress
    """The bar; hidden if standard error is not a terminal."""
    task: TaskID
    """The only line of the bar."""

    def say(self, line: str) -> None:
        """Show a line that stays."""
        self.bar.console.print(line, markup=False, highlight=False)

    def shapes(self, total: int) -> None:
        """Set the number of shapes to search."""
        self.bar.update(self.task, total=total)

    def replaying(self, candidate: TuningCandidate) -> None:
        """Show the configuration that is being replayed."""
        workers = " + ".join(
            f"{count:,}x{role.tensor_parallel_size} {role.pool}"
            for count, role in zip(candidate.replicas, candidate.shape.roles, strict=True)
        )
        self.bar.update(self.task, description=f"replaying {workers} ({candidate.shape.engine})")

    def looked_at(self, shape: WorkerShape) -> None:  # noqa: ARG002 - the search says which
        """Count a shape as searched."""
        self.bar.advance(self.task)


@contextmanager
def shown_progress() -> Iterator[ShownProgress]:
    """Show progress while the block runs.

    Yields: Receiver of the progress.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield ShownProgress(bar, bar.add_task("reading", total=None))


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
