"""What streaming jobs demand of Kafka's brokers, and which brokers carry it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import inference_catalog as catalog
from inference_blueprints.serving.streaming.job_size import job_size
from inference_blueprints.serving.streaming.stream_load import stream_load
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.sections.streaming.rules import ZONES_OF_EXPRESS
from inference_blueprints.spec.types import ExpressKafka, StreamingJob
from inference_catalog import BrokerSize
from inference_contracts.units import GB, MB, SECONDS_PER_HOUR

#: Replicas of a partition of an Express cluster, which AWS fixes.
_REPLICAS: Final = 3
#: Partitions of a topic of dead letters: few records, and no order is needed among them.
DEAD_LETTER_PARTITIONS: Final = 3
#: Default quota of brokers of a cluster.
_MAX_BROKERS: Final = 30
#: Each subtask has a connection to each broker to read events, and one to write dead letters.
_CONNECTIONS_PER_SUBTASK: Final = 2


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What jobs demand of all brokers together."""

    ingress_mb_per_second: float
    egress_mb_per_second: float
    """`ingress_mb_per_second`, `egress_mb_per_second`: MB per second that producers write, and that jobs
    read. Replication is not counted: AWS's throughput of Express brokers is that of clients."""
    partitions: int
    """Partitions with their replicas."""
    stored_gb: float
    """Events that are kept, without replicas, in GB."""
    connections: int
    """Connections of the jobs to each broker."""


def topic_partitions(jobs: Iterable[StreamingJob]) -> dict[str, int]:
    """Return the partitions of each topic of events. One that several jobs read has enough for each of them.

    jobs: Jobs of the blueprint.
    """
    return {
        name: max(job_size(job).partitions for job in readers) for name, readers in _readers(jobs).items()
    }


def _readers(jobs: Iterable[StreamingJob]) -> dict[str, list[StreamingJob]]:
    """Return the jobs that read each topic of events, by its name."""
    readers: dict[str, list[StreamingJob]] = {}
    for _, job in usable(jobs):
        readers.setdefault(job.topic_names.events, []).append(job)
    return readers


def broker_load(jobs: Iterable[StreamingJob]) -> BrokerLoad:
    """Return what jobs demand. A topic that several jobs read is written once."""
    jobs = list(jobs)
    written, stored, egress = 0.0, 0.0, 0.0
    partitions, connections = sum(topic_partitions(jobs).values()), 0
    for readers in _readers(jobs).values():
        loads = [stream_load(job).ingress_bytes_per_second for job in readers]
        written += max(loads)
        stored += max(loads) * readers[-1].events.retention_hours * SECONDS_PER_HOUR
        egress += sum(loads)
        connections += sum(job_size(job).parallelism for job in readers) * _CONNECTIONS_PER_SUBTASK
        partitions += len(readers) * DEAD_LETTER_PARTITIONS
    return BrokerLoad(
        ingress_mb_per_second=written / MB,
        egress_mb_per_second=egress / MB,
        partitions=partitions * _REPLICAS,
        stored_gb=stored / GB,
        connections=connections,
    )


def needed_brokers(load: BrokerLoad, size: BrokerSize) -> int:
    """Return how many brokers of a size carry a load, in three equal zones.

    load: What the jobs demand.
    """
    maximum = max(
        load.ingress_mb_per_second / size.ingress_mb_per_second,
        load.egress_mb_per_second / size.egress_mb_per_second,
        load.partitions / size.partitions,
    )
    return ZONES_OF_EXPRESS * max(1, math.ceil(maximum / ZONES_OF_EXPRESS))


def fitting_brokers(load: BrokerLoad, express: ExpressKafka) -> str:
    """Return what to change so that the brokers carry a load, in words.

    express: The cluster, whose brokers do not carry it.
    """
    sizes = catalog.broker_sizes()
    more = needed_brokers(load, sizes[express.instance_type])
    if more <= _MAX_BROKERS:
        return f"set brokers to {more}, or choose a larger instanceType"
    for size in sizes.values():
        count = needed_brokers(load, size)
        if count <= _MAX_BROKERS:
            return f"set instanceType to {size.name} and brokers to {count}"
    return "no Express cluster carries this; divide the jobs among several platforms"
