"""What teams' jobs came to in each month (UTC), summed up as they end: no list of jobs is ever read for it.

A team's month is one item of the table (`batch.jobs.table`), with numbers named ``<model>/<queue>/<figure>``.
A job adds to it in the transaction that ends it, so it adds once; one that is redriven adds what came since.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime

from batch.contracts.shard import Usage
from batch.jobs.job import Job, RequestCounts
from batch.jobs.table import Additions, Table


@dataclass(frozen=True, slots=True)
class Figures:
    """What jobs came to.

    Parameters
    ----------
    jobs
        Jobs that ended; one that is redriven counts once.
    requests, failed
        Requests with an answer, and those that ended as an error.
    input_tokens, cached_tokens, output_tokens
        Tokens that the endpoint counted.
    usd
        Dollars.
    """

    jobs: int = 0
    requests: int = 0
    failed: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Spending:
    """What the jobs of one model and queue came to.

    Parameters
    ----------
    model, queue
        Which.
    figures
        What they came to.
    """

    model: str
    queue: str
    figures: Figures


def month_of(now: float) -> str:
    """Return the month of a moment, such as ``2026-11``.

    Parameters
    ----------
    now
        Seconds since 1970.
    """
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m}"


def added(job: Job, counts: RequestCounts, usage: Usage, usd: float) -> Figures:
    """Return what a job adds at its end to what it had added at the end of the attempt before.

    Parameters
    ----------
    job
        The job before its end.
    counts, usage, usd
        What all attempts together came to.
    """
    return Figures(
        jobs=int(job.attempt == 1),
        requests=counts.completed - job.counts.completed,
        failed=counts.failed - job.counts.failed,
        input_tokens=usage.input_tokens - job.usage.input_tokens,
        cached_tokens=usage.cached_tokens - job.usage.cached_tokens,
        output_tokens=usage.output_tokens - job.usage.output_tokens,
        usd=usd - job.cost_usd,
    )


def additions(job: Job, figures: Figures, *, now: float) -> Additions:
    """Return what is added to the month of a job's team.

    Parameters
    ----------
    job
        The job.
    figures
        What it adds.
    now
        Seconds since 1970.
    """
    named = {f"{job.model}/{job.queue}/{name}": value for name, value in asdict(figures).items()}
    return Additions(_identifier(job.team, month_of(now)), named)


class SpendingTable:
    """The sums.

    Parameters
    ----------
    table
        Where they are.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def of(self, team: str, month: str) -> tuple[Spending, ...]:
        """Return what a team's jobs came to in a month, by model and queue in the order of their names.

        Parameters
        ----------
        team
            The team.
        month
            The month, such as ``2026-11``.
        """
        known = {field.name for field in fields(Figures)}
        found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for name, value in self._table.sums(_identifier(team, month)).items():
            model, queue, figure = name.split("/")
            if figure in known:
                found[model, queue][figure] = value
        return tuple(
            Spending(model, queue, Figures(**{**values, "usd": float(values["usd"])}))  # type: ignore[arg-type]
            for (model, queue), values in sorted(found.items())
        )

    def usd(self, team: str, month: str) -> float:
        """Return what a team's jobs cost in a month, in dollars.

        Parameters
        ----------
        team
            The team.
        month
            The month, such as ``2026-11``.
        """
        return sum(each.figures.usd for each in self.of(team, month))


def _identifier(team: str, month: str) -> str:
    """Return the partition key."""
    return f"spending#{team}#{month}"
