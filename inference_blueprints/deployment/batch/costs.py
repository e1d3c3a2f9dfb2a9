"""What a team's jobs cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from inference_blueprints.deployment.batch.jobs import Job


@dataclass(frozen=True, slots=True)
class Cost:
    """What jobs of one team, model and queue cost.

    Parameters
    ----------
    team, model, queue
        Whose, and which.
    jobs, requests
        How many, and how many of their requests were answered.
    input_tokens, output_tokens
        Tokens of prompts and answers.
    usd
        Dollars.
    """

    team: str
    model: str
    queue: str
    jobs: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


def costs_since(jobs: Iterable[Job], moment: datetime) -> list[Cost]:
    """Sum jobs up by team, model and queue, the dearest first.

    Parameters
    ----------
    jobs
        The newest first.
    moment
        Jobs that were submitted before are left out.
    """
    sums: dict[tuple[str, str, str], Cost] = {}
    for job in jobs:
        if job["created_at"] < moment.timestamp():
            break
        key = job["team"], job["model"], job["queue"]
        sums[key] = _with(sums.get(key, Cost(*key)), job)
    return sorted(sums.values(), key=lambda cost: (-cost.usd, cost.team, cost.model, cost.queue))


def month_began(now: datetime) -> datetime:
    """Return when the month of a moment began, by UTC as the platform's budgets do.

    Parameters
    ----------
    now
        The moment, with its time zone.
    """
    return now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _with(cost: Cost, job: Job) -> Cost:
    """Add a job."""
    usage = job["usage"]
    return replace(
        cost,
        jobs=cost.jobs + 1,
        requests=cost.requests + job["request_counts"]["completed"],
        input_tokens=cost.input_tokens + usage["input_tokens"],
        output_tokens=cost.output_tokens + usage["output_tokens"],
        usd=cost.usd + job["cost_usd"],
    )
