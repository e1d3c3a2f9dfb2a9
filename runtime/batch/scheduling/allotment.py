"""Allots the places of a model to its jobs by deadline, priority, age and team.

A place is one running shard. Jobs that would otherwise miss their deadline get the places that they need, in
order of rank. The remaining places go round by team, so that a thousand jobs of one team get one share.
Priority grows with waiting time, so every job starts at some time. A running job keeps at least one place,
because a map cannot run zero children
(https://docs.aws.amazon.com/step-functions/latest/dg/concepts-examine-map-run.html). Places above its
allotment become free as its shards end.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from inference_contracts.units import SECONDS_PER_HOUR

#: Hours of waiting that equal one step of priority.
HOURS_PER_PRIORITY: Final = 1.0
# Shortest time of a shard: reading, committing and reporting.
_MIN_SHARD_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class WaitingOrRunning:
    """A job that needs places."""

    job: str
    """The job's identifier."""
    team: str
    priority: int
    """Priority of the job. Higher goes first."""
    submitted: float
    deadline: float
    """`submitted`, `deadline`: Seconds since 1970."""
    shards: int
    """Unfinished shards. The job never gets more places than these."""
    seconds_per_shard: float
    """Estimated seconds per shard."""
    is_running: bool = False
    """Whether the job was admitted."""

    def rank(self, now: float) -> tuple[float, float, float, str]:
        """Return the sort key of a job, smallest first: aged priority, deadline, age."""
        waited = max(now - self.submitted, 0.0) / SECONDS_PER_HOUR
        return -(self.priority + waited / HOURS_PER_PRIORITY), self.deadline, self.submitted, self.job

    def places_needed(self, now: float) -> int:
        """Return the places needed to end by the deadline; if it is too late, all that the job can use."""
        left = max(self.deadline - now, 0.0)
        # A shard cannot be divided: each place finishes this many whole shards before the deadline.
        rounds = math.floor(left / max(self.seconds_per_shard, _MIN_SHARD_SECONDS))
        return math.ceil(self.shards / max(rounds, 1))


def allot(
    jobs: Iterable[WaitingOrRunning], places: int, *, now: float, maximum: Mapping[str, int] | None = None
) -> Mapping[str, int]:
    """Return the places of every job. A waiting job with 0 places continues to wait.

    The sum is at most `places`, unless more jobs than that are running.

    jobs: All jobs of one model with unfinished shards.
    places: Shards that the model's workers run at the same time.
    maximum: Maximum number of places by team. Other teams may hold all.
    """
    maximum = maximum or {}
    ranked = sorted((job for job in jobs if job.shards > 0), key=lambda job: job.rank(now))
    allotted = {job.job: int(job.is_running) for job in ranked}
    free = places - sum(allotted.values())
    left = defaultdict(lambda: places, maximum)
    for job in ranked:
        left[job.team] -= allotted[job.job]
    for job in ranked:
        more = max(min(job.places_needed(now) - allotted[job.job], free, left[job.team]), 0)
        allotted[job.job] += more
        left[job.team] -= more
        free -= more
    _share(ranked, allotted, free, left)
    return allotted


def _share(
    ranked: Sequence[WaitingOrRunning], allotted: dict[str, int], free: int, left: dict[str, int]
) -> None:
    """Give the remaining places, one by one, to the team with the fewest."""
    queues: dict[str, list[WaitingOrRunning]] = defaultdict(list)
    held: dict[str, int] = defaultdict(int)
    place = {job.job: number for number, job in enumerate(ranked)}
    for job in ranked:
        queues[job.team].append(job)
        held[job.team] += allotted[job.job]
    while free > 0 and queues:
        team = min(queues, key=lambda name: (held[name], place[queues[name][0].job]))
        job = queues[team][0]
        if left[team] <= 0:
            del queues[team]
            continue
        if allotted[job.job] >= job.shards:
            queues[team].pop(0)
            if not queues[team]:
                del queues[team]
            continue
        allotted[job.job] += 1
        held[team] += 1
        left[team] -= 1
        free -= 1
