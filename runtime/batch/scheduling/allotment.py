"""How the places of a model are allotted to its jobs: by deadline, priority, age and team.

A place is one shard in work. Who must be fast to keep its deadline gets what that takes, in the order of
rank; what is left goes round, team by team, so that one team's thousand jobs are one share. Priority grows
with waiting, so nothing starves. A job that runs keeps one place: a map cannot run none at once
(https://docs.aws.amazon.com/step-functions/latest/dg/concepts-examine-map-run.html), and what it holds above
its allotment it gives back as its shards end.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

#: Hours of waiting that weigh as much as one step of priority.
HOURS_PER_PRIORITY: Final = 1.0
_SECONDS_PER_HOUR = 3600.0
# Fetching, committing and reporting alone.
_LEAST_SHARD_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class WaitingOrRunning:
    """A job that wants places.

    Parameters
    ----------
    job, team
        Its identifier, and whose it is.
    priority
        Of its queue; higher goes first.
    submitted, deadline
        In seconds since 1970.
    shards
        Shards that are not done; it never has more places than these.
    seconds_per_shard
        How long a shard takes, estimated.
    is_running
        Whether it was admitted.
    """

    job: str
    team: str
    priority: int
    submitted: float
    deadline: float
    shards: int
    seconds_per_shard: float
    is_running: bool = False

    def rank(self, now: float) -> tuple[float, float, float, str]:
        """Return what orders jobs, the first first: aged priority, deadline, age.

        Parameters
        ----------
        now
            Seconds since 1970.
        """
        waited = max(now - self.submitted, 0.0) / _SECONDS_PER_HOUR
        return -(self.priority + waited / HOURS_PER_PRIORITY), self.deadline, self.submitted, self.job

    def places_needed(self, now: float) -> int:
        """Return the places with which it ends by its deadline, or all that it can use if it is too late.

        Parameters
        ----------
        now
            Seconds since 1970.
        """
        left = max(self.deadline - now, 0.0)
        # Shards are not divided: each place does so many of them until the deadline.
        rounds = math.floor(left / max(self.seconds_per_shard, _LEAST_SHARD_SECONDS))
        return math.ceil(self.shards / max(rounds, 1))


def allot(jobs: Iterable[WaitingOrRunning], places: int, *, now: float) -> Mapping[str, int]:
    """Return the places of every job; a waiting one with none goes on waiting.

    The sum is at most `places`, unless more jobs run than there are places.

    Parameters
    ----------
    jobs
        All jobs of one model that have shards left.
    places
        Shards that the model's workers hold at once.
    now
        Seconds since 1970.
    """
    ranked = sorted((job for job in jobs if job.shards > 0), key=lambda job: job.rank(now))
    allotted = {job.job: int(job.is_running) for job in ranked}
    free = places - sum(allotted.values())
    for job in ranked:
        more = max(min(job.places_needed(now) - allotted[job.job], free), 0)
        allotted[job.job] += more
        free -= more
    _share(ranked, allotted, free)
    return allotted


def _share(ranked: Sequence[WaitingOrRunning], allotted: dict[str, int], free: int) -> None:
    """Give places that nobody needs, one after another, to the team that has the fewest."""
    queues: dict[str, list[WaitingOrRunning]] = defaultdict(list)
    held: dict[str, int] = defaultdict(int)
    place = {job.job: number for number, job in enumerate(ranked)}
    for job in ranked:
        queues[job.team].append(job)
        held[job.team] += allotted[job.job]
    while free > 0 and queues:
        team = min(queues, key=lambda name: (held[name], place[queues[name][0].job]))
        job = queues[team][0]
        if allotted[job.job] >= job.shards:
            queues[team].pop(0)
            if not queues[team]:
                del queues[team]
            continue
        allotted[job.job] += 1
        held[team] += 1
        free -= 1
