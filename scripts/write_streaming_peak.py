"""Write the figures of docs/streaming.md for a job with 200,000 calls per second.

They are between ``<!-- peak -->`` and ``<!-- end of peak -->``: sizes and prices of `blueprints plan`, with
the processor time that benchmarks/stream_to_signals.py measured, if benchmarks/results.json has it.
``make generate`` runs this script.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from generated_files import filled, rewrite

from inference_blueprints import catalog
from inference_blueprints.catalog import BrokerSize
from inference_blueprints.loading import load_blueprint
from inference_blueprints.pricing.streaming_price import brokers_usd_per_day, job_usd_per_day
from inference_blueprints.serving.streaming.broker_load import BrokerLoad, broker_load, needed_brokers
from inference_blueprints.serving.streaming.job_size import (
    MOST_KPUS,
    MOST_PARALLELISM,
    StreamingJobSize,
    job_size,
)
from inference_blueprints.serving.streaming.stream_load import StreamLoadFigures, stream_load
from inference_blueprints.spec.types import StreamingJob

_ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = _ROOT / "docs" / "streaming.md"
RESULTS: Final = _ROOT / "benchmarks" / "results.json"
#: Median processor time of the job for an event with its call, in microseconds.
FIGURE: Final = "stream_to_signals_processor_us"
CALLS_PER_SECOND: Final = 200_000.0
_LATENCY_MILLIS: Final = 300.0
#: Half of each KPU is free, as in the plan.
_BUSY_SHARE: Final = 0.5
_MICROSECONDS: Final = 1e6
_MOST_BROKERS: Final = 30


@dataclass(frozen=True, slots=True)
class StreamPeak:
    """What a peak needs.

    Parameters
    ----------
    load, size
        The job's load, and its size with the processor time of `microseconds`.
    brokers, broker_count
        Size and number of the brokers.
    broker_load
        What the job demands of them.
    microseconds
        Processor time per event with its call.
    is_measured
        Whether it is of the whole job, by the benchmark; else it is the sum of the catalogue's parts.
    job_usd_per_day, brokers_usd_per_day
        Prices.
    """

    load: StreamLoadFigures
    size: StreamingJobSize
    brokers: BrokerSize
    broker_count: int
    broker_load: BrokerLoad
    microseconds: float
    is_measured: bool
    job_usd_per_day: float
    brokers_usd_per_day: float


def measured_microseconds(results: Path = RESULTS) -> float | None:
    """Return the measured processor time of an event with its call; None if there is none yet.

    Parameters
    ----------
    results
        Results of benchmarks.
    """
    entries = json.loads(results.read_text(encoding="utf-8"))
    return next((float(each["value"]) for each in entries if each["name"] == FIGURE), None)


def peak_of(measured: float | None) -> StreamPeak:
    """Return what the peak needs.

    Parameters
    ----------
    measured
        Microseconds of processor time per event with its call; None for the sum of the catalogue's parts.
    """
    spec = load_blueprint("streaming-g6e").blueprint.spec
    job = _at_peak(spec.streaming[0])
    load, cost = stream_load(job), catalog.job_load()
    microseconds = measured or cost.microseconds_per_event + cost.microseconds_per_call
    planned = job_size(job)
    cpu = load.calls_per_second * microseconds / _MICROSECONDS / _BUSY_SHARE
    kpus = math.ceil(max(cpu, planned.in_flight_kpus, planned.state_kpus))
    sized = job.model_copy(update={"parallelism": kpus})
    size = replace(job_size(sized), kpus=kpus, parallelism_per_kpu=1, cpu_kpus=cpu)
    demand = broker_load([sized])
    services = catalog.service_prices(spec.environment.region)
    offers = [
        (usd, needed_brokers(demand, each), each)
        for each in catalog.broker_sizes().values()
        if needed_brokers(demand, each) <= _MOST_BROKERS
        and (usd := brokers_usd_per_day(needed_brokers(demand, each), each, demand, services)) is not None
    ]
    usd, count, brokers = min(offers, key=lambda offer: offer[0])
    return StreamPeak(
        load=load,
        size=size,
        brokers=brokers,
        broker_count=count,
        broker_load=demand,
        microseconds=microseconds,
        is_measured=measured is not None,
        job_usd_per_day=job_usd_per_day(size, services),
        brokers_usd_per_day=usd,
    )


def _at_peak(job: StreamingJob) -> StreamingJob:
    """Return the job with as many events as make the calls of the peak; they are proportional."""
    per_call = job.load.events_per_second / stream_load(job).calls_per_second
    load = job.load.model_copy(
        update={"events_per_second": CALLS_PER_SECOND * per_call, "latency_millis": _LATENCY_MILLIS}
    )
    events = job.events.model_copy(update={"partitions": None})
    return job.model_copy(update={"load": load, "events": events, "parallelism": None})


def page_text(page: str, measured: float | None) -> str:
    """Return the page with new figures.

    Parameters
    ----------
    page
        The current page.
    measured
        As in `peak_of`.
    """
    return filled(page, "peak", "\n".join(_lines(peak_of(measured))))


def _lines(peak: StreamPeak) -> Iterator[str]:
    load, size, demand = peak.load, peak.size, peak.broker_load
    total = peak.job_usd_per_day + peak.brokers_usd_per_day
    ingress = f"{demand.ingress_mb_per_second:,.1f} MB per second"
    rows = {
        "events per second": (f"{load.events_per_second:,.0f}", "calls x events per call"),
        "calls in flight": (f"{load.in_flight:,.0f}", "200,000/s x 0.3 s, Little's law"),
        "connections to the model": (
            f"{load.in_flight:,.0f}",
            "one call at a time on each, as with HTTP/1.1",
        ),
        "KPUs": (
            f"{size.kpus:,}",
            f"200,000/s x {peak.microseconds:,.0f} us / {_BUSY_SHARE:.0%} busy; calls in flight need "
            f"{size.in_flight_kpus:,.1f}, state {size.state_kpus:,.1f}",
        ),
        "calls in flight per subtask, at most": (
            f"{size.max_in_flight_per_subtask:,}",
            "twice the mean, one subtask per KPU",
        ),
        "partitions": (f"{size.partitions:,}", "four for each subtask"),
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
    if peak.is_measured:
        yield "The processor time of an event with its call was measured with the whole job and a"
        yield f"**simulated** endpoint ([`{FIGURE}`](benchmarks.md))."
        yield "Its virtual machine compiled for a quick start (`-XX:TieredStopAtLevel=1`), as in local runs;"
        yield "the default, which compiles more, was not measured."
    else:
        yield "The processor time of an event with its call is the sum of separate measurements with"
        yield "**simulated** endpoints (`streaming.json` in the catalogue). The benchmark `stream_to_signals`"
        yield f"measures the whole job; from then on, its figure `{FIGURE}` is used here."
    yield "This is an extrapolation: nothing of this size has run, and a KPU's vCPU is taken to be as fast as"
    yield "that of the measurement."
    yield _quota(size)
    yield "[Real time](real-time.md) has the frontends, load balancers and traffic of such a peak."


def _quota(size: StreamingJobSize) -> str:
    if size.kpus <= MOST_KPUS:
        return f"It fits AWS's default quota of {MOST_KPUS} KPUs."
    if size.kpus <= MOST_PARALLELISM:
        return f"AWS must raise the quota of {MOST_KPUS} KPUs, or several jobs share the events."
    jobs = math.ceil(size.kpus / MOST_PARALLELISM)
    return f"A job has at most {MOST_PARALLELISM} subtasks, so {jobs} jobs share the events."


def main() -> None:
    """Write the page."""
    rewrite(PAGE, lambda page: page_text(page, measured_microseconds()))


if __name__ == "__main__":
    main()
