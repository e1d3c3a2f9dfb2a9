"""The day of each queue of batch, and what it takes of the quotas of services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from types import MappingProxyType

from inference_blueprints.report.plan.cells import counted, few
from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.sizing.batch_day import BatchDay
from inference_blueprints.report.sizing.batch_quotas import ServiceQuotaUse, service_quota_uses
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.way_capacity import MAX_DAYS, ModelCapacity, longest_hours
from inference_contracts import batch_limits as limits
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class BatchDaySummary:
    """A day of one queue, computed from its declared load."""

    queue: str
    model: str
    """The model of its jobs."""
    requests_per_second: float
    """Mean over the day."""
    jobs: int
    segments: int
    shards: int
    """`jobs`, `segments`, `shards`: Numbers per day; shards at most."""
    in_flight: int
    """Most requests in flight: what the model's engines run at once, or what the batch workers send at once
    if that is less."""
    seconds_per_request: float
    """Longest mean duration of a request with which a day's requests are finished in a day."""
    requests_per_job: int
    """Mean requests of a job."""
    deadline_hours: float
    """Maximum hours of a job."""
    full_requests_per_second: float | None
    """Requests per second that the model completes at its highest load (simulated), with no more requests at
    once than `in_flight`; None without a latency profile."""
    load_requests_per_second: float
    """Mean requests per second of all queues and streaming jobs of the model."""
    planned_requests_per_second: float | None = None
    """Requests per second that the model completes at its stated peak (simulated), for which the plan has
    its workers; None without a latency profile. If `by_hour`: what it completes beside the other requests of
    its deployments, in the mean of a job that begins at the worst hour."""
    by_hour: bool = False
    """Whether the queue states its own requests, and the plan counts what other requests leave it by hour."""
    keeps_up: bool | None = None
    """Whether the model completes as many requests as its queues get; None if its speed is unknown."""
    left_requests_per_second: float | None = None
    """If `by_hour`: Requests per second that the model completes beside real time and streaming jobs, in the
    mean of a day, if no other queue had any."""
    why_unknown: str = ""
    """Why the speed of the model is unknown, as a clause; empty if it is known."""
    most_requests_per_second: float | None = None
    """Requests per second that the model does not exceed (simulated): `full_requests_per_second` if it is
    known, else with workers that compute nothing but prompts, none longer than the latency profile; None
    without a latency profile."""

    @property
    def job_hours(self) -> float | None:
        """Hours of a job if the model answers nothing else; None if the model's speed is unknown."""
        return _hours(self.requests_per_job, self.full_requests_per_second)

    @property
    def least_job_hours(self) -> float | None:
        """Hours that a job takes at least, also if the model's speed is unknown; None without a bound."""
        return _hours(self.requests_per_job, self.most_requests_per_second)

    @property
    def planned_job_hours(self) -> float | None:
        """Hours of a job at the requests per second of the stated peak; None if unknown or endless."""
        return _hours(self.requests_per_job, self.planned_requests_per_second)

    @property
    def deadline_can_hold(self) -> bool | None:
        """Whether a job can end before its deadline; None if that is unknown.

        That it cannot may be known although the model's speed is not.
        """
        if self.least_job_hours is not None and self.least_job_hours > self.deadline_hours:
            return False
        return None if self.job_hours is None else True

    @property
    def is_late(self) -> bool:
        """Whether a job misses its deadline, at full load or at the rate of the stated peak."""
        planned = self.planned_job_hours
        late = self.deadline_can_hold is False or (planned is not None and planned > self.deadline_hours)
        return late or self.planned_requests_per_second == 0


def _hours(requests: int, requests_per_second: float | None) -> float | None:
    return requests / requests_per_second / SECONDS_PER_HOUR if requests_per_second else None


def summarise_days(
    days: Sequence[BatchDay],
    capacities: Mapping[str, ModelCapacity],
    streaming: Mapping[str, float] = MappingProxyType({}),
) -> tuple[BatchDaySummary, ...]:
    """Return the figures of the days for the plan.

    capacities: What can be done of each queue's requests. Without it, only the batch workers limit requests
        in flight.
    streaming: Requests per second that each model gets from streaming jobs.
    """
    in_flight = {day.queue: _in_flight(day, capacities.get(day.queue)) for day in days}
    rates = {
        model: sum(day.requests_per_second for day in days if day.model == model)
        for model in {day.model for day in days}
    }
    found = tuple(
        BatchDaySummary(
            queue=day.queue,
            model=day.model,
            requests_per_second=day.requests_per_second,
            jobs=day.jobs,
            segments=day.segments,
            shards=day.shards,
            in_flight=in_flight[day.queue],
            seconds_per_request=in_flight[day.queue] / rates[day.model],
            requests_per_job=day.requests_per_job,
            deadline_hours=day.deadline_hours,
            full_requests_per_second=_full_speed(capacities.get(day.queue), in_flight[day.queue]),
            load_requests_per_second=rates[day.model] + streaming.get(day.model, 0.0),
            planned_requests_per_second=_planned_speed(day, capacities.get(day.queue), in_flight[day.queue]),
            by_hour=_by_hour(capacities.get(day.queue)),
            left_requests_per_second=_left_speed(capacities.get(day.queue), in_flight[day.queue]),
            why_unknown=capacities[day.queue].why_unknown if day.queue in capacities else "",
            most_requests_per_second=_most_speed(capacities.get(day.queue), in_flight[day.queue]),
        )
        for day in days
    )
    return tuple(replace(each, keeps_up=_keeps_up(each, found)) for each in found)


def _keeps_up(day: BatchDaySummary, days: Sequence[BatchDaySummary]) -> bool | None:
    """Return whether a model has the time for its queues; None if its speed is unknown.

    Each queue takes the share of the time in which its own requests are completed: those of unlike lengths
    have unlike rates, which do not add up. Requests of queues without their own lengths are a part of the
    model's workload.
    """
    if day.full_requests_per_second is None:
        most = day.most_requests_per_second
        return False if most is not None and day.requests_per_second > most else None
    if not day.by_hour:
        return day.load_requests_per_second <= day.full_requests_per_second
    same = [each for each in days if each.model == day.model and each.by_hour]
    if not all(each.left_requests_per_second for each in same):
        return False  # real time leaves no time
    return sum(each.requests_per_second / (each.left_requests_per_second or 1.0) for each in same) <= 1.0


def _in_flight(day: BatchDay, capacity: ModelCapacity | None) -> int:
    """Return what the workers have memory for and send, or what the engines run if that is less."""
    held = limits.WORKER_LINE_BYTES // (limits.LINE_COPIES * day.line_bytes)
    sent = day.workers * max(1, min(limits.REQUESTS_PER_WORKER, held))
    return sent if capacity is None else min(sent, capacity.concurrent_requests)


def _full_speed(capacity: ModelCapacity | None, in_flight: int) -> float | None:
    return None if capacity is None else capacity.requests_per_second_with(in_flight)


def _most_speed(capacity: ModelCapacity | None, in_flight: int) -> float | None:
    """Return the speed at full load, or what it does not exceed if it is unknown."""
    full = _full_speed(capacity, in_flight)
    return full if full is not None or capacity is None else capacity.most_requests_per_second


def _planned_speed(day: BatchDay, capacity: ModelCapacity | None, in_flight: int) -> float | None:
    """Return the speed at the stated peak, or at full load if requests at once allow no more.

    For a queue that states its own requests: the mean speed of a job beside the other requests of its
    deployments, if the job begins at the worst hour of the day.
    """
    full = _full_speed(capacity, in_flight)
    if capacity is None or full is None or capacity.planned_requests_per_second is None:
        return None
    if capacity.left_by_hour is not None:
        left = [min(full, each) for each in capacity.left_by_hour]
        return day.requests_per_job / longest_hours(day.requests_per_job, left) / SECONDS_PER_HOUR
    return min(full, capacity.planned_requests_per_second)


def _left_speed(capacity: ModelCapacity | None, in_flight: int) -> float | None:
    """Return the mean speed over a day if batch had no other queue; None for a part of the workload."""
    full = _full_speed(capacity, in_flight)
    if capacity is None or full is None or capacity.batch_by_hour is None:
        return None
    return fmean(min(full, each) for each in capacity.batch_by_hour)


def _by_hour(capacity: ModelCapacity | None) -> bool:
    return capacity is not None and capacity.left_by_hour is not None


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
        tuple(map(day_row, summary[BATCH_DAYS])),
        (
            "Means of the declared load. Concurrent requests: the most that the model's engines run at "
            "once and "
            "the batch workers send. Seconds per request: if requests take longer, a day's requests are not "
            "finished in a day.",
            *map(_deadline, summary[BATCH_DAYS]),
            *_backlogs(summary[BATCH_DAYS]),
        ),
    )


def _deadline(day: BatchDaySummary) -> str:
    """Say whether a job of the queue can end before its deadline."""
    deadline = f"deadline of {day.deadline_hours:g} h"
    full = day.full_requests_per_second
    if day.job_hours is None or full is None:
        return _deadline_beyond_the_profile(day, deadline)
    job = f"Queue {day.queue}: a job of {counted(day.requests_per_job, 'request')} takes"
    at_full_load = (
        f"at least {_hours_text(day.job_hours)} if {day.model} answers nothing else ({number(full)} requests "
        "per second at full load, simulated)"
    )
    if not day.deadline_can_hold:
        return f"{job} {at_full_load}. Its {deadline} cannot hold: add replicas, or make its jobs smaller."
    if day.planned_requests_per_second == 0:
        return (
            f"{job} {at_full_load}. Beside other requests, it is not finished within {MAX_DAYS} days, and "
            f"its {deadline} cannot hold: add replicas."
        )
    if day.planned_job_hours is None or day.planned_requests_per_second is None:
        return f"{job} {at_full_load}. Whether its {deadline} holds beside other requests is unknown."
    rate = number(day.planned_requests_per_second)
    at_the_peak = f"{_hours_text(day.planned_job_hours)} at the {rate} requests per second " + (
        "that other requests leave it at the worst hours" if day.by_hour else "of the stated peak"
    )
    if day.planned_job_hours > day.deadline_hours:
        needed = day.requests_per_job / (day.deadline_hours * SECONDS_PER_HOUR)
        advice = "Add replicas, or raise the deadline." if day.by_hour else "Raise the peak or the deadline."
        return (
            f"{job} {at_the_peak}, longer than its {deadline}, which needs {number(needed)} requests per "
            f"second for this job only. It takes {at_full_load}. {advice}"
        )
    holds = (
        "does not hold: requests of queues come faster than they are answered, and jobs wait for each other"
        if day.keeps_up is False
        else "holds if no other requests slow it"
    )
    return f"{job} {at_the_peak}, and {at_full_load}. Its {deadline} {holds}."


def _deadline_beyond_the_profile(day: BatchDaySummary, deadline: str) -> str:
    """Say whether a job can end before its deadline if the speed is unknown: perhaps, or surely not."""
    most, hours, least = day.most_requests_per_second, day.least_job_hours, ""
    if most is not None and hours is not None:
        least = (
            f" A job of {counted(day.requests_per_job, 'request')} takes at least {_hours_text(hours)}: "
            f"{day.model} completes at most {number(most)} requests per second, if all its workers compute "
            "only prompts, and none takes longer than at the end of the latency profile (simulated)."
        )
    if day.deadline_can_hold is False:
        advice = "add replicas, or make its jobs smaller"
        return f"Queue {day.queue}: its {deadline} cannot hold: {advice}.{least}"
    return (
        f"Queue {day.queue}: whether its {deadline} can hold is unknown, as is the speed of {day.model}"
        f"{day.why_unknown and ': '}{day.why_unknown}.{least}"
    )


def _hours_text(hours: float) -> str:
    """Return hours, or minutes if they would read as none."""
    return f"{hours:,.1f} h" if hours >= 1 else f"{number(hours * 60, 2)} min"


def _backlog(day: BatchDaySummary, days: Sequence[BatchDaySummary]) -> str | None:
    """Say that a model gets more requests than it answers; None if it does not, or if this is unknown."""
    full = day.full_requests_per_second
    if day.keeps_up is not False:
        return None
    if full is None:
        return (
            f"{day.model} does not keep up: its queue {day.queue} sends {number(day.requests_per_second)} "
            f"requests per second, and it answers at most {number(day.most_requests_per_second or 0.0)} "
            "(simulated). Add replicas."
        )
    if day.by_hour:
        queues = "; ".join(
            f"queue {each.queue} sends {number(each.requests_per_second)} requests per second, at most "
            f"{number(each.left_requests_per_second or 0.0)} are answered"
            for each in days
            if each.model == day.model and each.by_hour
        )
        return (
            f"{day.model} does not keep up with batch. Beside requests that are not batch, with all time "
            f"that they leave: {queues} (means of a day, simulated). Add replicas."
        )
    return (
        f"{day.model} does not keep up: its queues and streaming jobs send "
        f"{number(day.load_requests_per_second)} requests per second, and it answers at most {number(full)} "
        "(simulated). Add replicas."
    )


def _backlogs(days: Sequence[BatchDaySummary]) -> Iterator[str]:
    """Yield a sentence for each model that does not keep up."""
    yield from dict.fromkeys(note for day in days if (note := _backlog(day, days)))


def _days_in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the load of each queue, and a warning for a deadline that cannot hold."""
    days = summary[BATCH_DAYS]
    if days:
        yield Label.BATCH, few(map(_day_in_short, days))
    for day in days:
        if day.is_late:
            yield Label.WARNINGS, _deadline(day)
    for sentence in _backlogs(days):
        yield Label.WARNINGS, sentence


def _day_in_short(day: BatchDaySummary) -> str:
    jobs = f"queue {day.queue}: {day.jobs:,} {'job' if day.jobs == 1 else 'jobs'} a day"
    if day.deadline_can_hold is None or day.least_job_hours is None:
        return f"{jobs}; whether {day.deadline_hours:g} h hold is unknown"
    return f"{jobs}, each at least {_hours_text(day.least_job_hours)} of its {day.deadline_hours:g} h"


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
        tuple(map(_use_row, summary[SERVICE_QUOTAS])),
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


def _quotas_in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the largest share of a quota, and a warning for each that is exceeded."""
    uses = summary[SERVICE_QUOTAS]
    if uses:
        largest = max(uses, key=lambda use: use.share)
        yield Label.BATCH, f"{share(largest)} of the quota '{largest.quota_name}' of {largest.service}"
    for use in uses:
        if use.is_exceeded and not use.adjustable:
            yield (
                Label.WARNINGS,
                f"{use.service}, {use.quota_name}: AWS does not raise this quota. Lower the load of batch.",
            )
    for sentence in _exceeded(summary):
        yield Label.WARNINGS, sentence


def _rate(use: ServiceQuotaUse) -> str:
    """Return the unit where it is time; what else is counted, its name says, and the terminal is narrow."""
    return use.unit if use.unit in {"/s", "s"} else ""


def _exceeded(summary: PlanSummary) -> Iterator[str]:
    for use in summary[SERVICE_QUOTAS]:
        if use.is_exceeded and use.adjustable:
            yield f"Request an increase before you run this load: {use.service}, {use.quota_name}."


def figure(value: float, unit: str) -> str:
    """Return a figure with its unit, as short as it may be.

    value, unit: As a quota's use has them.
    """
    return f"{number(value)}{unit}" if unit == "/s" else f"{number(value)} {unit}".rstrip()


def share(use: ServiceQuotaUse) -> str:
    """Return the share of a quota that is taken, in percent, or that it is above.

    use: What is taken of it.
    """
    percent = use.share * 100
    if use.is_exceeded:
        return f"{percent:,.0f} %, exceeded"
    return f"{percent:,.0f} %" if percent >= 1 else "under 1 %"


BATCH_DAYS = PlanSection(
    "batchDays",
    lambda basis: summarise_days(basis.batch_days, basis.capacities, basis.streaming_calls),
    _days_in_short,
    (batch_days,),
    ("job_hours", "least_job_hours", "planned_job_hours", "deadline_can_hold"),
)
SERVICE_QUOTAS = PlanSection(
    "serviceQuotas",
    lambda basis: service_quota_uses(basis.batch_days, basis.spec.environment.region),
    _quotas_in_short,
    (service_quotas,),
    ("share", "is_exceeded"),
)
