"""Near real time in the plan's tables: jobs, and the Kafka cluster."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.report.figures import KafkaSummary, PlanSummary, StreamingSummary
from inference_blueprints.report.plan.tables.cells import UNKNOWN, usd
from inference_blueprints.report.tables.text_table import TextTable

_GB = 1e9
_MB = 1e6
#: From here on, figures have no decimals.
_WHOLE = 100


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
        tuple(map(_job_row, summary.streaming)),
        tuple(_job_notes(summary.streaming)),
    )


def kafka_brokers(summary: PlanSummary) -> TextTable:
    """Return the table of the Kafka cluster."""
    kafka = summary.kafka
    return TextTable(
        "Kafka",
        ("brokers",),
        (
            "written, MB/s",
            "read, MB/s",
            "partitions with replicas",
            "connections per broker",
            "events kept, GB",
            "largest share of a broker's limits",
            "USD per day",
        ),
        (_kafka_row(kafka),) if kafka else (),
        (
            "Limits of Express brokers: sustained throughput and recommended partitions of their size. "
            "Price: brokers, written data and storage at the peak all day.",
        ),
    )


def _job_row(job: StreamingSummary) -> tuple[str, ...]:
    return (
        f"{job.job} ({job.model})",
        _number(job.events_per_second),
        _number(job.calls_per_second),
        f"{_number(job.in_flight)} ({job.max_in_flight:,})",
        f"{job.kpus:,}",
        f"{job.parallelism:,}",
        f"{job.partitions:,}",
        usd(job.usd_per_day),
    )


def _job_notes(jobs: tuple[StreamingSummary, ...]) -> Iterator[str]:
    for job in jobs:
        yield (
            f"{job.job}: {_number(job.events_per_second)} events per second are "
            f"{_number(job.sessions_per_second)} sessions per second and, after the debounce, "
            f"{_number(job.calls_per_second)} calls per second. By Little's law, calls in flight = "
            f"{_number(job.calls_per_second)}/s x {job.latency_millis / 1000:g} s = "
            f"{_number(job.in_flight)}; a subtask may have {job.max_in_flight_per_subtask:,} in flight."
        )
        yield (
            f"{job.job}: state of {_number(job.open_sessions)} open sessions, {_bytes(job.state_bytes)} in a "
            f"full checkpoint; {_number(job.stored_signals)} signals, {_bytes(job.signal_bytes)} in the "
            f"store. {job.model} reads {_number(job.prompt_tokens_per_second)} and writes "
            f"{_number(job.answer_tokens_per_second)} tokens per second. {_verdict(job)}"
        )
        if job.kpus > job.kpu_quota:
            yield (
                f"{job.job}: request an increase of the quota of {job.kpu_quota} KPUs per application before "
                "you deploy this."
            )
    if jobs:
        load = catalog.job_load()
        each = ", ".join(f"{_number(job.calls_per_second_per_kpu)} for {job.job}" for job in jobs)
        yield (
            f"Calls per second that a KPU carries with half of it free: {each}. From {load.date} on "
            f"{load.machine}: {load.microseconds_per_call:g} us of processor time per call and "
            f"{load.microseconds_per_event:g} us per event, of the whole job with a simulated endpoint. "
            "USD per day: KPUs and their storage, without the model's nodes."
        )


def _verdict(job: StreamingSummary) -> str:
    """Say whether the model keeps up."""
    if job.keeps_up is None:
        return "Whether it keeps up is unknown: the catalogue has no latency profile for it."
    full = f"{job.model_requests_per_second:,.3g} requests per second at full load (simulated)"
    if job.keeps_up:
        return f"It completes {full}."
    return f"It does not keep up: it completes {full}. Add replicas."


def _kafka_row(kafka: KafkaSummary) -> tuple[str, ...]:
    shares = [kafka.ingress_share, kafka.egress_share, kafka.partitions_share]
    known = [share for share in shares if share is not None]
    return (
        f"{kafka.brokers} x {kafka.instance_type}" if kafka.brokers else "existing cluster",
        f"{kafka.ingress_mb_per_second:,.3f}",
        f"{kafka.egress_mb_per_second:,.3f}",
        f"{kafka.partitions:,}",
        f"{kafka.connections_per_broker:,}",
        f"{kafka.stored_gb:,.1f}",
        f"{100 * max(known):,.1f} %" if known else UNKNOWN,
        usd(kafka.usd_per_day) if kafka.brokers else "yours",
    )


def _number(value: float) -> str:
    """Return a number with three digits, or whole from 100 on."""
    return f"{value:,.0f}" if value >= _WHOLE else f"{value:,.3g}"


def _bytes(size: float) -> str:
    return f"{size / _GB:,.1f} GB" if size >= _GB else f"{size / _MB:,.1f} MB"
