"""Summarises streaming jobs and their Kafka cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import inference_catalog as catalog
from inference_blueprints.report.figures import KafkaSummary, StreamingSummary
from inference_blueprints.report.pricing.streaming_price import brokers_usd_per_day, job_usd_per_day
from inference_blueprints.report.sizing.model_capacity import ModelCapacity
from inference_blueprints.serving.streaming.broker_load import broker_load
from inference_blueprints.serving.streaming.job_size import MOST_KPUS, job_size, most_calls_per_kpu
from inference_blueprints.serving.streaming.stream_load import stream_load
from inference_blueprints.spec.types import Spec


def summarise_streaming(spec: Spec, capacities: Mapping[str, ModelCapacity]) -> Iterator[StreamingSummary]:
    """Yield the figures of each job.

    Parameters
    ----------
    spec
        The blueprint's section.
    capacities
        Capacity of each model.
    """
    services = catalog.service_prices(spec.environment.region)
    workloads = {model.name: model.workload for model in spec.models}
    for job in spec.streaming:
        load, size, workload = stream_load(job), job_size(job), workloads[job.model]
        yield StreamingSummary(
            job=job.name,
            model=job.model,
            events_per_second=load.events_per_second,
            sessions_per_second=load.sessions_per_second,
            calls_per_second=load.calls_per_second,
            latency_millis=job.load.latency_millis,
            in_flight=load.in_flight,
            max_in_flight=size.max_in_flight,
            max_in_flight_per_subtask=size.max_in_flight_per_subtask,
            kpus=size.kpus,
            parallelism=size.parallelism,
            parallelism_per_kpu=size.parallelism_per_kpu,
            kpu_quota=MOST_KPUS,
            calls_per_second_per_kpu=most_calls_per_kpu(job),
            partitions=size.partitions,
            open_sessions=load.open_sessions,
            state_bytes=load.state_bytes,
            stored_signals=load.stored_signals,
            signal_bytes=load.signal_bytes,
            prompt_tokens_per_second=load.calls_per_second * workload.input_tokens,
            answer_tokens_per_second=load.calls_per_second * workload.output_tokens,
            model_requests_per_second=capacities[job.model].full_requests_per_second,
            usd_per_day=job_usd_per_day(size, services),
        )


def summarise_kafka(spec: Spec) -> KafkaSummary | None:
    """Return the figures of the Kafka cluster; None without one.

    Parameters
    ----------
    spec
        The blueprint's section.
    """
    if spec.kafka is None:
        return None
    load, express = broker_load(spec.streaming), spec.kafka.express
    size = catalog.broker_sizes()[express.instance_type] if express else None
    services = catalog.service_prices(spec.environment.region)
    count = express.brokers if express else None
    carried = (
        {
            "ingress_share": load.ingress_mb_per_second / (express.brokers * size.ingress_mb_per_second),
            "egress_share": load.egress_mb_per_second / (express.brokers * size.egress_mb_per_second),
            "partitions_share": load.partitions / (express.brokers * size.partitions),
        }
        if express and size
        else {"ingress_share": None, "egress_share": None, "partitions_share": None}
    )
    return KafkaSummary(
        brokers=count,
        instance_type=express.instance_type if express else None,
        ingress_mb_per_second=load.ingress_mb_per_second,
        egress_mb_per_second=load.egress_mb_per_second,
        partitions=load.partitions,
        connections_per_broker=load.connections,
        stored_gb=load.stored_gb,
        usd_per_day=brokers_usd_per_day(count, size, load, services) if count and size else None,
        **carried,
    )
