"""Write the figures of docs/streaming.md for a job with 200,000 calls per second.

They are between ``<!-- peak -->`` and ``<!-- end of peak -->``: sizes and prices of `blueprints plan`.
``make generate`` runs this script.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from generated_files import fill_section, rewrite

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.pricing.streaming_price import brokers_usd_per_day, job_usd_per_day
from inference_blueprints.serving.streaming import (
    MAX_KPUS,
    MAX_PARALLELISM,
    BrokerLoad,
    StreamingJobSize,
    StreamLoadFigures,
    broker_load,
    job_size,
    needed_brokers,
    stream_load,
)
from inference_blueprints.spec.types import StreamingJob
from inference_catalog import BrokerSize

_ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = _ROOT / "docs" / "streaming.md"
CALLS_PER_SECOND: Final = 200_000.0
_LATENCY_MILLIS: Final = 300.0
_MAX_BROKERS: Final = 30


@dataclass(frozen=True, slots=True)
class StreamPeak:
    """What a peak needs."""

    load: StreamLoadFigures
    """The job's load."""
    size: StreamingJobSize
    """Its size in the plan."""
    brokers: BrokerSize
    broker_count: int
    broker_load: BrokerLoad
    """What the job demands of them."""
    job_usd_per_day: float
    brokers_usd_per_day: float
    """`job_usd_per_day`, `brokers_usd_per_day`: Prices."""


def stream_peak(calls_per_second: float = CALLS_PER_SECOND) -> StreamPeak:
    """Return what a peak needs.

    calls_per_second: Calls to the model.
    """
    spec = load_blueprint("streaming-g6e").blueprint.spec
    job = _at_peak(spec.streaming[0], calls_per_second)
    size, demand = job_size(job), broker_load([job])
    services = catalog.service_prices(spec.environment.region)
    offers = [
        (usd, needed_brokers(demand, each), each)
        for each in catalog.broker_sizes().values()
        if needed_brokers(demand, each) <= _MAX_BROKERS
        and (usd := brokers_usd_per_day(needed_brokers(demand, each), each, demand, services)) is not None
    ]
    usd, count, brokers = min(offers, key=lambda offer: offer[0])
    return StreamPeak(
        load=stream_load(job),
        size=size,
        brokers=brokers,
        broker_count=count,
        broker_load=demand,
        job_usd_per_day=job_usd_per_day(size, services),
        brokers_usd_per_day=usd,
    )


def _at_peak(job: StreamingJob, calls_per_second: float) -> StreamingJob:
    """Return the job with as many events as make the calls of the peak; they are proportional."""
    per_call = job.load.events_per_second / stream_load(job).calls_per_second
    load = job.load.model_copy(
        update={"events_per_second": calls_per_second * per_call, "latency_millis": _LATENCY_MILLIS}
    )
    events = job.events.model_copy(update={"partitions": None})
    return job.model_copy(update={"load": load, "events": events, "parallelism": None})


def page_text(page: str, calls_per_second: float = CALLS_PER_SECOND) -> str:
    """Return the page with new figures.

    calls_per_second: As in `stream_peak`.
    """
    return fill_section(page, "peak", "\n".join(_lines(stream_peak(calls_per_second))))


def _lines(peak: StreamPeak) -> Iterator[str]:
    load, size, demand, cost = peak.load, peak.size, peak.broker_load, catalog.job_load()
    total = peak.job_usd_per_day + peak.brokers_usd_per_day
    ingress = f"{demand.ingress_mb_per_second:,.1f} MB per second"
    rows = {
        "events per second": (f"{load.events_per_second:,.0f}", "calls x events per call"),
        "calls in flight": (
            f"{load.in_flight:,.0f}",
            f"{load.calls_per_second:,.0f}/s x 0.3 s, Little's law",
        ),
        "connections to the model": (
            f"{load.in_flight:,.0f}",
            "one call at a time on each, as with HTTP/1.1",
        ),
        "KPUs": (
            f"{size.kpus:,}",
            f"({load.calls_per_second:,.0f}/s x {cost.microseconds_per_call:g} us + "
            f"{load.events_per_second:,.0f}/s x {cost.microseconds_per_event:g} us) / 50% busy; calls in "
            f"flight need {size.in_flight_kpus:,.1f}, state {size.state_kpus:,.1f}",
        ),
        "calls in flight per subtask, at most": (
            f"{size.max_in_flight_per_subtask:,}",
            "twice the mean, one subtask per KPU",
        ),
        "partitions": (f"{size.partitions:,}", "[four for each 1,400 calls](#how-a-job-is-sized)"),
        "brokers": (
            f"{peak.broker_count} x {peak.brokers.name}",
            f"{ingress}, {demand.partitions:,} replicas",
        ),
        "connections to each broker": (f"{demand.connections:,}", "two for each subtask"),
        "connections to the store": (f"{size.parallelism:,}", "one for each subtask and node"),
        "USD per day": (
            f"{total:,.2f}",
            f"job {peak.job_usd_per_day:,.2f}, brokers with their data {peak.brokers_usd_per_day:,.2f}; "
            "without workers, frontends and the store",
        ),
    }
    yield "| What | Value | Computed from |"
    yield "|---|---:|---|"
    for name, (value, source) in rows.items():
        yield f"| {name} | {value} | {source} |"
    yield ""
    yield "The processor time was measured with the whole job and a **simulated** endpoint"
    yield "([`stream_processor_time`](benchmarks.md)), after the JVM had compiled the job."
    yield "This is an extrapolation: nothing of this size has run, and a KPU's vCPU is taken to be as fast as"
    yield "that of the measurement."
    yield _quota(size)
    yield "[Real time](real-time.md) has the frontends, load balancers and traffic of such a peak."


def _quota(size: StreamingJobSize) -> str:
    if size.kpus <= MAX_KPUS:
        return f"It fits AWS's default quota of {MAX_KPUS} KPUs."
    shards = math.ceil(size.kpus / MAX_KPUS)
    divided = f"`shards: {shards}` divides the job among applications with at most {MAX_KPUS} KPUs each"
    if size.kpus <= MAX_PARALLELISM:
        return f"AWS must raise the quota of {MAX_KPUS} KPUs per application, or {divided}."
    return f"One application has at most {MAX_PARALLELISM} subtasks: {divided}."


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
