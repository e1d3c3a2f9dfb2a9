"""Monthly totals of each team (UTC). They grow as jobs end, so nothing has to read a list of jobs.

One item of the table (`batch.jobs.record_table`) holds a month of a team. Its numbers are named
`model/queue/figure`. A job adds to it in the transaction that ends the job, so it adds once. A redriven job
adds the difference to its earlier end.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime

from batch.contracts.shard import Usage
from batch.jobs.job_table import Job, RequestCounts
from batch.jobs.record_table import Additions, Table
from inference_contracts.batch_names import SPENDING_PREFIX


@dataclass(frozen=True, slots=True)
class Figures:
    """Totals of jobs."""

    jobs: int = 0
    """Jobs that ended. A redriven job counts once."""
    requests: int = 0
    """Requests with an answer."""
    failed: int = 0
    """Requests that ended with an error."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    """`input_tokens`, `cached_tokens`, `output_tokens`: Tokens that the endpoint counted."""
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Spending:
    """Totals of the jobs of one model and queue."""

    model: str
    queue: str
    figures: Figures
    """What they came to."""


def month_of(now: float) -> str:
    """Return the month of a time, such as ``2026-11``."""
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m}"


def added(job: Job, counts: RequestCounts, usage: Usage, usd: float) -> Figures:
    """Return the difference between a job's totals at its end and at the end of the earlier attempt.

    job: The job before its end.
    counts, usage, usd: Totals over all attempts.
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
    """Return the amounts to add to the month of a job's team."""
    named = {f"{job.model}/{job.queue}/{name}": value for name, value in asdict(figures).items()}
    return Additions(_identifier(job.team, month_of(now)), named)


class SpendingTable:
    def __init__(self, table: Table) -> None:
        self._table = table

    def of(self, team: str, month: str) -> tuple[Spending, ...]:
        """Return the totals of a team's jobs in a month, sorted by model and queue.

        month: Such as ``2026-11``.
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
        """Return the cost of a team's jobs in a month, in dollars.

        month: Such as ``2026-11``.
        """
        return sum(each.figures.usd for each in self.of(team, month))


def _identifier(team: str, month: str) -> str:
    return f"{SPENDING_PREFIX}{team}#{month}"
