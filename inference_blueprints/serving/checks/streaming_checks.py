"""Checks that streaming jobs, their brokers and their store can carry the stated load."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.serving import streaming as sizes
from inference_blueprints.serving.streaming import broker_load, fitting_brokers, job_size, stream_load
from inference_blueprints.serving.traffic import is_apart, model_traffic
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import Rule
from inference_blueprints.spec.types import Spec
from inference_contracts.errors import Finding
from inference_contracts.units import GB


def calls_are_within_the_peak(spec: Spec) -> Iterator[Finding]:
    """Check that streaming jobs send a model at most as many requests as its workload's peak."""
    peaks = {
        model.name: way.means.peak_requests_per_second
        for _, model in usable(spec.models)
        for way in model_traffic(spec, model).ways
        if way.kind == "realTime"
    }
    calls: dict[str, float] = defaultdict(float)
    for index, job in usable(spec.streaming):
        # One with lengths or deployments of its own is not a part of the peak.
        if job.model not in peaks or is_apart(job):
            continue
        load = stream_load(job)
        calls[job.model] += load.calls_per_second
        if calls[job.model] > peaks[job.model]:
            message = (
                f"{load.events_per_second:,.10g} events per second make {load.calls_per_second:,.1f} calls, "
                f"and with the jobs before it model '{job.model}' gets {calls[job.model]:,.1f} per second; "
                f"its workload has peakRequestsPerSecond {peaks[job.model]:,.10g}; raise the peak and "
                "replicas, or raise session.debounceMillis so that more events share a prompt"
            )
            yield Finding(("spec", "streaming", index, "load", "eventsPerSecond"), message)


def jobs_have_enough_subtasks(spec: Spec) -> Iterator[Finding]:
    """Check that a streaming job can have the KPUs and subtasks that its load needs."""
    for index, job in usable(spec.streaming):
        size, path = job_size(job), ("spec", "streaming", index)
        needed = sizes.needed_kpus(job)
        if size.parallelism < needed:
            message = (
                f"got {size.parallelism}, the load needs {needed} KPUs{_each(size)} and each has at least "
                "one subtask; "
                f"raise it to {needed}, or leave it out"
            )
            yield Finding((*path, "parallelism"), message)
        elif needed > sizes.MAX_PARALLELISM:
            message = (
                f"the load needs {needed} KPUs{_each(size)}, an application has at most "
                f"{sizes.MAX_PARALLELISM} parallel subtasks; raise 'shards'"
            )
            yield Finding((*path, "load"), message)
        elif size.kpus > sizes.MAX_KPUS:
            message = (
                f"the job needs {size.kpus} KPUs{_each(size)}, the default quota of an application is "
                f"{sizes.MAX_KPUS}; set 'shards' to {math.ceil(size.all_kpus / sizes.MAX_KPUS)} before the "
                "first deployment, or request an increase (Service Quotas, Managed Service for Apache Flink)"
            )
            yield Finding((*path, "load"), message, "warning")


def _each(size: sizes.StreamingJobSize) -> str:
    return " in each of its applications" if size.shards > 1 else ""


def subtasks_have_partitions(spec: Spec) -> Iterator[Finding]:
    """Check that the topic of a streaming job has at least as many partitions as the job has subtasks."""
    for index, job in usable(spec.streaming):
        size = job_size(job)
        subtasks = size.parallelism * size.shards
        if size.partitions < subtasks:
            message = (
                f"got {size.partitions}, but the job has {subtasks} subtasks and each reads whole "
                f"partitions, so {subtasks - size.partitions} would read nothing; raise it to "
                f"{subtasks} or more"
            )
            yield Finding(("spec", "streaming", index, "events", "partitions"), message)


def brokers_carry_the_events(spec: Spec) -> Iterator[Finding]:
    """Check that Express brokers carry the bytes and partitions of the streaming jobs."""
    express = spec.kafka.express if spec.kafka else None
    size = catalog.broker_sizes().get(express.instance_type) if express else None
    if express is None or size is None:
        return
    load = broker_load(spec.streaming)
    faults = [
        f"{what} of {value:,.1f}{unit}, {express.brokers} brokers carry {express.brokers * each:,.1f}{unit}"
        for what, value, each, unit in (
            ("ingress", load.ingress_mb_per_second, size.ingress_mb_per_second, " MB/s"),
            ("egress", load.egress_mb_per_second, size.egress_mb_per_second, " MB/s"),
            ("partitions with replicas", float(load.partitions), float(size.partitions), ""),
        )
        if value > express.brokers * each
    ]
    if faults:
        message = f"the jobs have {'; '.join(faults)}; {fitting_brokers(load, express)}"
        yield Finding(("spec", "kafka", "express"), message)


def signals_fit_the_store(spec: Spec) -> Iterator[Finding]:
    """Check that the signals of streaming jobs fit into the signal store before they expire."""
    if spec.signal_store is None:
        return
    maximum = spec.signal_store.valkey.max_gb
    total = sum(stream_load(job).signal_bytes for _, job in usable(spec.streaming)) / GB
    if total > maximum:
        message = (
            f"got {maximum}, but the signals of the streaming jobs take up to {total:,.1f} GB before they "
            f"expire, and a full store loses signals; raise it to {int(total) + 1} or more, or lower "
            "signal.ttlSeconds"
        )
        yield Finding(("spec", "signalStore", "valkey", "maxGb"), message)


#: Checks of streaming, in the order of their messages.
STREAMING_CHECKS: tuple[Rule, ...] = (
    calls_are_within_the_peak,
    jobs_have_enough_subtasks,
    subtasks_have_partitions,
    brokers_carry_the_events,
    signals_fit_the_store,
)
