"""Size and price of streaming jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.report.plan.cells import counted, few, usd
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.tokens import TOKEN_PRICES
from inference_blueprints.report.pricing.streaming_price import job_usd_per_day
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.estimates.request_estimates import answer_time
from inference_blueprints.serving.performance import time_to_first_token_ms
from inference_blueprints.serving.streaming import (
    MAX_DEAD_LETTER_BYTES,
    MAX_KPUS,
    dead_letter_bytes,
    dead_letter_load,
    job_size,
    max_calls_per_kpu,
    stream_load,
)
from inference_blueprints.serving.traffic import job_means, own_part, serving_deployments
from inference_blueprints.serving.way_capacity import way_capacities
from inference_blueprints.spec.types import StreamingJob
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import GB, MB, MILLISECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class StreamingSummary:
    """A streaming job in the busiest minute."""

    job: str
    model: str
    """The model that it calls."""
    events_per_second: float
    sessions_per_second: float
    calls_per_second: float
    """`events_per_second`, `sessions_per_second`, `calls_per_second`: Events, sessions that begin, and calls
    to the model."""
    latency_millis: int
    """Expected mean time of a call."""
    in_flight: float
    """Mean calls in flight: calls per second x seconds per call."""
    max_in_flight: int
    max_in_flight_per_subtask: int
    """`max_in_flight`, `max_in_flight_per_subtask`: Most calls in flight of the job and of a subtask."""
    shards: int
    """Applications that divide the partitions among themselves."""
    kpus: int
    parallelism: int
    parallelism_per_kpu: int
    """`kpus`, `parallelism`, `parallelism_per_kpu`: Kinesis Processing Units, and parallel subtasks, of all
    applications."""
    kpu_quota: int
    """Default quota of KPUs of an application."""
    max_age_seconds: int
    """Time for which events wait while the model answers nobody."""
    dead_letter_mb_per_second: float
    """MB of dead letters per second while the model is away for longer."""
    dead_letter_bytes: int
    """The longest dead letter."""
    calls_per_second_per_kpu: float
    """Calls that a KPU carries with half of it free: from measurements with simulated endpoints."""
    partitions: int
    """Partitions of the topic."""
    open_sessions: float
    """Sessions in the state."""
    state_bytes: float
    """The size of a full checkpoint."""
    stored_signals: float
    """Signals in the store."""
    signal_bytes: float
    """Their size."""
    prompt_tokens_per_second: float
    answer_tokens_per_second: float
    """`prompt_tokens_per_second`, `answer_tokens_per_second`: Tokens that the model reads and writes for the
    job, at the mean lengths of its workload."""
    model_requests_per_second: float | None
    """Requests per second that the model completes at its highest load (simulated); None if the latency
    profile does not reach it, or there is none."""
    model_calls_per_second: float
    """Calls per second to the model of all streaming jobs."""
    deadline_millis: int
    """Longest time of a call and its repetitions."""
    call_millis: float | None
    """Mean time of a call at the model's stated peak, without waiting (simulated); None without a latency
    profile. `latency_millis` is what the blueprint expects."""
    usd_per_day: float | None
    """US dollars of the application per day, with the KPU that manages it; None if a price is not known."""
    why_unknown: str = ""
    """Why `model_requests_per_second` is unknown, as a clause; empty if it is known."""

    @property
    def keeps_up(self) -> bool | None:
        """Whether the model completes as many requests as all jobs send; None if its speed is unknown."""
        full = self.model_requests_per_second
        return None if full is None else self.model_calls_per_second <= full

    @property
    def most_calls_per_second(self) -> float | None:
        """Calls per second with the most calls in flight, by Little's law; None if their time is unknown."""
        if self.call_millis is None:
            return None
        return self.max_in_flight / self.call_millis * MILLISECONDS_PER_SECOND


def _summarise(basis: PlanBasis) -> Iterator[StreamingSummary]:
    """Yield the figures of each job."""
    models = {model.name: model for model in basis.spec.models}
    capacities = way_capacities(basis.spec, basis.spec.streaming, basis.workers)
    for job in basis.spec.streaming:
        load, size, workload = stream_load(job), job_size(job), job_means(models[job.model], job)
        yield StreamingSummary(
            job=job.name,
            model=job.model,
            events_per_second=load.events_per_second,
            sessions_per_second=load.sessions_per_second,
            calls_per_second=load.calls_per_second,
            latency_millis=job.load.latency_millis,
            in_flight=load.in_flight,
            max_in_flight=size.max_in_flight * size.shards,
            max_in_flight_per_subtask=size.max_in_flight_per_subtask,
            shards=size.shards,
            kpus=size.all_kpus,
            parallelism=size.parallelism * size.shards,
            parallelism_per_kpu=size.parallelism_per_kpu,
            kpu_quota=MAX_KPUS,
            max_age_seconds=job.max_age_seconds,
            dead_letter_mb_per_second=dead_letter_load(job) / MB,
            dead_letter_bytes=min(dead_letter_bytes(job), MAX_DEAD_LETTER_BYTES),
            calls_per_second_per_kpu=max_calls_per_kpu(job),
            partitions=size.partitions,
            open_sessions=load.open_sessions,
            state_bytes=load.state_bytes,
            stored_signals=load.stored_signals,
            signal_bytes=load.signal_bytes,
            prompt_tokens_per_second=load.calls_per_second * workload.input_tokens,
            answer_tokens_per_second=load.calls_per_second * workload.output_tokens,
            model_requests_per_second=capacities[job.name].full_requests_per_second,
            model_calls_per_second=basis.streaming_calls[job.model],
            deadline_millis=job.deadline_millis,
            call_millis=_call_millis(basis, job),
            usd_per_day=job_usd_per_day(size, basis.services),
            why_unknown=capacities[job.name].why_unknown,
        )


def _call_millis(basis: PlanBasis, job: StreamingJob) -> float | None:
    """Return the mean time of a call at the peak of its deployments; None without a latency profile."""
    prices = {(each.model, each.deployment): each for each in basis[TOKEN_PRICES]}
    names, times = serving_deployments(basis.spec, job), []
    for roles in basis.deployments.values():
        model, name = roles[0].model.name, roles[0].deployment.name
        if model != job.model or name not in names:
            continue
        way = own_part(job, roles[0].traffic)
        means = way.means if way else roles[0].traffic.means
        first, price = time_to_first_token_ms(roles, means), prices.get((model, name))
        if first is None or price is None:
            return None
        times.append(answer_time(means.output_tokens, first, price.time_per_output_token_ms))
    return max(times, default=None)


def _too_slow(jobs: tuple[StreamingSummary, ...]) -> Iterator[str]:
    """Yield a sentence for each job whose calls take too long by the plan's own figures."""
    for job in jobs:
        most = job.most_calls_per_second
        if job.call_millis is None or most is None:
            continue
        call = f"{job.job}: a call of {job.model} takes at least {job.call_millis:,.0f} ms (simulated)"
        if job.call_millis > job.deadline_millis:
            yield f"{call}, and its deadlineMillis is {job.deadline_millis:,}, which ends calls before that."
        elif most < job.calls_per_second:
            yield (
                f"{call}, not the {job.latency_millis:,} of latencyMillis: {job.max_in_flight:,} calls in "
                f"flight are {number(most)} per second, and the job makes {number(job.calls_per_second)}. "
                "Raise latencyMillis."
            )


def streaming_jobs(summary: PlanSummary) -> TextTable:
    """Return the table of streaming jobs."""
    return TextTable(
        "Near real time",
        ("job (model)",),
        (
            "events per second",
            "calls per second",
            "calls in flight, mean (maximum)",
            "KPUs",
            "subtasks",
            "partitions",
            "USD per day",
        ),
        tuple(map(_job_row, summary[STREAMING])),
        tuple(_job_notes(summary[STREAMING])),
    )


def _job_row(job: StreamingSummary) -> tuple[str, ...]:
    return (
        f"{job.job} ({job.model})",
        number(job.events_per_second),
        number(job.calls_per_second),
        f"{number(job.in_flight)} ({job.max_in_flight:,})",
        f"{job.kpus:,}",
        f"{job.parallelism:,}",
        f"{job.partitions:,}",
        usd(job.usd_per_day),
    )


def _job_notes(jobs: tuple[StreamingSummary, ...]) -> Iterator[str]:
    for job in jobs:
        yield (
            f"{job.job}: {number(job.events_per_second)} events per second are "
            f"{number(job.sessions_per_second)} sessions per second and, after the debounce, "
            f"{number(job.calls_per_second)} calls per second. By Little's law, calls in flight = "
            f"{number(job.calls_per_second)}/s x {job.latency_millis / 1000:g} s = "
            f"{number(job.in_flight)}; a subtask may have {job.max_in_flight_per_subtask:,} in flight."
        )
        if job.shards > 1:
            yield f"{job.job}: {job.shards} applications divide the partitions among themselves."
        yield (
            f"{job.job}: if {job.model} answers nobody, events wait for {job.max_age_seconds:,} s. Then "
            f"dead letters of at most {job.dead_letter_bytes:,} bytes take up to "
            f"{job.dead_letter_mb_per_second:,.3f} MB per second, beside the events; their topic keeps them "
            "for 14 days."
        )
        yield (
            f"{job.job}: state of {number(job.open_sessions)} open sessions, {_bytes(job.state_bytes)} in a "
            f"full checkpoint; {number(job.stored_signals)} signals, {_bytes(job.signal_bytes)} in the "
            f"store. {job.model} reads {number(job.prompt_tokens_per_second)} and writes "
            f"{number(job.answer_tokens_per_second)} tokens per second. {_verdict(job)}"
        )
    yield from _above_quota(jobs)
    yield from _too_slow(jobs)
    if jobs:
        load = catalog.job_load()
        each = ", ".join(f"{number(job.calls_per_second_per_kpu)} for {job.job}" for job in jobs)
        yield (
            f"Calls per second that a KPU carries with half of it free: {each}. From {load.date} on "
            f"{load.machine}: {load.microseconds_per_call:g} us of processor time per call and "
            f"{load.microseconds_per_event:g} us per event, of the whole job with a simulated endpoint. "
            "USD per day: KPUs and their storage, without the model's nodes."
        )


def _above_quota(jobs: tuple[StreamingSummary, ...]) -> Iterator[str]:
    for job in jobs:
        if job.kpus > job.kpu_quota * job.shards:
            yield (
                f"{job.job}: set 'shards' to {math.ceil(job.kpus / job.kpu_quota)}, or request an increase "
                f"of the quota of {job.kpu_quota} KPUs per application, before you deploy this."
            )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the load and size of each job, and a warning if its model does not keep up."""
    jobs = summary[STREAMING]
    if jobs:
        yield (
            Label.STREAMING,
            few(
                f"{job.job}: {number(job.events_per_second)} events/s are "
                f"{number(job.calls_per_second)} calls/s of {job.model}, {counted(job.kpus, 'KPU')}"
                for job in jobs
            ),
        )
    for job in jobs:
        if job.keeps_up is False:
            yield Label.WARNINGS, f"{job.job}: {job.model} gets more calls than it answers. {_verdict(job)}"
    for sentence in (*_above_quota(jobs), *_too_slow(jobs)):
        yield Label.WARNINGS, sentence


def _verdict(job: StreamingSummary) -> str:
    """Say whether the model keeps up."""
    completed = job.model_requests_per_second
    if completed is None:
        return f"Whether it keeps up at full load is unknown: {job.why_unknown}."
    full = f"{number(completed)} requests per second at full load (simulated)"
    if job.keeps_up:
        return f"It completes {full}."
    return (
        f"It does not keep up: streaming jobs make {number(job.model_calls_per_second)} calls per second, "
        f"and it completes {full}. Add replicas."
    )


def _bytes(size: float) -> str:
    return f"{size / GB:,.1f} GB" if size >= GB else f"{size / MB:,.1f} MB"


STREAMING = PlanSection(
    "streaming", lambda basis: tuple(_summarise(basis)), _in_short, (streaming_jobs,), ("keeps_up",)
)
