"""What a team has spent this month and is about to spend: a budget stops admission, never a running shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from batch.contracts.states import FINAL
from batch.jobs.job import Job
from batch.jobs.job_table import JobTable

_PAGE = 100


def month_began(now: float) -> int:
    """Return when the month began, in seconds since 1970.

    Parameters
    ----------
    now
        Seconds since 1970.
    """
    at = datetime.fromtimestamp(now, UTC)
    return int(at.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp())


def jobs_since(jobs: JobTable, team: str, since: int) -> Iterator[Job]:
    """Iterate over a team's jobs that were submitted since a moment, newest first.

    Parameters
    ----------
    jobs
        All jobs.
    team
        The team.
    since
        Seconds since 1970.
    """
    after = None
    while True:
        page = jobs.of_team(team, after=after, limit=_PAGE)
        for job in page.jobs:
            if job.created_at < since:
                return
            yield job
        if not page.has_more:
            return
        after = page.jobs[-1].id


def spent_usd(jobs: Iterable[Job]) -> float:
    """Return what jobs that have ended cost, in dollars.

    Parameters
    ----------
    jobs
        A team's jobs of a month.
    """
    return sum(job.cost_usd for job in jobs if job.state in FINAL)
