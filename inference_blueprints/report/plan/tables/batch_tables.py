"""Batch in the plan's tables: a day of each queue, and what it takes of the services' quotas."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.figures import BatchDaySummary, PlanSummary, ServiceQuotaUse
from inference_blueprints.report.tables.text_table import TextTable

#: From here on, figures have no decimals.
_WHOLE = 100


def batch_days(summary: PlanSummary) -> TextTable:
    """Return the table of days."""
    return TextTable(
        "Batch load per day",
        ("queue (model)",),
        (
            "requests per second",
            "jobs",
            "segments",
            "shards, maximum",
            "concurrent requests, maximum",
            "seconds per request, maximum",
        ),
        tuple(map(day_row, summary.batch_days)),
        (
            "Means of the declared load. Concurrent requests: the most that the model's engines run at "
            "once and "
            "the batch workers send. Seconds per request: if requests take longer, a day's requests are not "
            "finished in a day.",
            *map(_deadline, summary.batch_days),
            *dict.fromkeys(note for day in summary.batch_days if (note := _backlog(day))),
        ),
    )


def _deadline(day: BatchDaySummary) -> str:
    """Say whether a job of the queue can end before its deadline."""
    deadline = f"deadline of {day.deadline_hours:g} h"
    if day.job_hours is None:
        return (
            f"Queue {day.queue}: whether its {deadline} can hold is unknown. The catalogue has no latency "
            f"profile for {day.model}."
        )
    verdict = "can hold" if day.deadline_can_hold else "cannot hold: add replicas, or make its jobs smaller"
    return (
        f"Queue {day.queue}: a job of {day.requests_per_job:,} requests takes at least "
        f"{day.job_hours:.1f} h if "
        f"{day.model} answers nothing else ({day.full_requests_per_second:.3g} requests per second at full "
        f"load, simulated). Its {deadline} {verdict}."
    )


def _backlog(day: BatchDaySummary) -> str | None:
    """Say that a model gets more requests than it answers; None if it does not, or if this is unknown."""
    if day.keeps_up is not False:
        return None
    return (
        f"{day.model} does not keep up: its queues get {day.load_requests_per_second:.3g} requests per "
        f"second, "
        f"and it answers at most {day.full_requests_per_second:.3g} (simulated). Add replicas."
    )


def day_row(day: BatchDaySummary) -> tuple[str, ...]:
    """Return the cells of a day."""
    return (
        f"{day.queue} ({day.model})",
        f"{day.requests_per_second:,.1f}",
        f"{day.jobs:,}",
        f"{day.segments:,}",
        f"{day.shards:,}",
        f"{day.in_flight:,}",
        f"{day.seconds_per_request:,.1f}",
    )


def service_quotas(summary: PlanSummary) -> TextTable:
    """Return the table of quotas."""
    return TextTable(
        "AWS quotas for batch",
        ("quota",),
        ("use, maximum", "default quota", "share", "adjustable"),
        tuple(map(_use_row, summary.service_quotas)),
        (
            f"Default quotas of {summary.region}. Adjustable: AWS raises the quota on request; a code "
            "is its code "
            "in Service Quotas. docs/batch.md explains each calculation.",
            *_exceeded(summary),
        ),
    )


def _use_row(use: ServiceQuotaUse) -> tuple[str, ...]:
    return (
        f"{use.service}: {use.quota_name}",
        figure(use.used, _rate(use)),
        figure(use.quota, _rate(use)),
        share(use),
        (use.code or "yes") if use.adjustable else "no",
    )


def _rate(use: ServiceQuotaUse) -> str:
    """Return the unit where it is time; what else is counted, its name says, and the terminal is narrow."""
    return use.unit if use.unit in {"/s", "s"} else ""


def _exceeded(summary: PlanSummary) -> Iterator[str]:
    for use in summary.service_quotas:
        if use.is_exceeded and use.adjustable:
            yield f"Request an increase before you run this load: {use.service}, {use.quota_name}."


def figure(value: float, unit: str) -> str:
    """Return a figure with its unit, as short as it may be.

    Parameters
    ----------
    value, unit
        As a quota's use has them.
    """
    number = f"{value:,.0f}" if value >= _WHOLE or value == int(value) else f"{value:,.3g}"
    return f"{number}{unit}" if unit == "/s" else f"{number} {unit}".rstrip()


def share(use: ServiceQuotaUse) -> str:
    """Return the share of a quota that is taken, in percent, or that it is above.

    Parameters
    ----------
    use
        What is taken of it.
    """
    percent = use.share * 100
    if use.is_exceeded:
        return f"{percent:,.0f} %, exceeded"
    return f"{percent:,.0f} %" if percent >= 1 else "under 1 %"
