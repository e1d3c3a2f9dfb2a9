"""The size of a streaming job on Managed Service for Apache Flink, and of its topic.

A Kinesis Processing Unit (KPU) has 1 vCPU, 3 GB of heap of its 4 GB of memory, and 50 GB of disk
(https://docs.aws.amazon.com/managed-flink/latest/java/how-resources.html). An application may have 64 KPUs
unless AWS raises this quota, at most 8 parallel subtasks per KPU, and a parallelism of at most 256
(https://docs.aws.amazon.com/managed-flink/latest/java/how-scaling.html).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import inference_catalog as catalog
from inference_blueprints.serving.streaming.stream_load import StreamLoadFigures, stream_load
from inference_blueprints.spec.types import StreamingJob
from inference_contracts.units import GB, MICROSECONDS_PER_SECOND

#: Default quota of an application.
MAX_KPUS: Final = 64
MAX_SUBTASKS_PER_KPU: Final = 8
MAX_PARALLELISM: Final = 256
KPU_DISK_GB: Final = 50
_KPU_HEAP_BYTES: Final = 3 * 10**9
#: Half of each KPU is free in the busiest minute: to catch up after a restart, and for bursts.
_BUSY_SHARE: Final = 0.5
#: Calls in flight that a job may have, as a multiple of the mean: bursts, slow answers and second attempts.
_IN_FLIGHT_HEADROOM: Final = 2
#: Least calls in flight of a subtask, so that a small job can catch up.
_MIN_IN_FLIGHT: Final = 16
#: More partitions than subtasks: the job can grow, and its topic need not.
_PARTITIONS_PER_SUBTASK: Final = 4
_MIN_PARTITIONS: Final = 12
#: A character of a prompt in the heap: its text, the request's JSON, and the bytes that are sent.
_HEAP_BYTES_PER_CHARACTER: Final = 4


@dataclass(frozen=True, slots=True)
class StreamingJobSize:
    """Size of a job."""

    kpus: int
    """KPUs at the start, without the one that AWS adds for the application's management."""
    parallelism: int
    """Parallel subtasks."""
    parallelism_per_kpu: int
    """How many of them share a KPU."""
    partitions: int
    """Partitions of the topic."""
    max_in_flight: int
    max_in_flight_per_subtask: int
    """`max_in_flight`, `max_in_flight_per_subtask`: Most calls to the model at a time, of the whole job and
    of one subtask."""
    cpu_kpus: float
    in_flight_kpus: float
    state_kpus: float
    """`cpu_kpus`, `in_flight_kpus`, `state_kpus`: KPUs that processor time, calls in flight and state need;
    the largest decides."""


def job_size(job: StreamingJob) -> StreamingJobSize:
    """Return the size of a job; keys of the blueprint count first.

    job: The job in the blueprint. Rules refuse sizes that cannot work.
    """
    load = stream_load(job)
    needed = needed_kpus(job)
    parallelism = job.parallelism or needed
    partitions = max(_MIN_PARTITIONS, _PARTITIONS_PER_SUBTASK * (job.parallelism or _topic_subtasks(load)))
    per_kpu = min(MAX_SUBTASKS_PER_KPU, max(1, parallelism // needed))
    calls = max(_MIN_IN_FLIGHT, math.ceil(load.in_flight * _IN_FLIGHT_HEADROOM / parallelism))
    return StreamingJobSize(
        kpus=math.ceil(parallelism / per_kpu),
        parallelism=parallelism,
        parallelism_per_kpu=per_kpu,
        partitions=job.events.partitions or partitions,
        max_in_flight=calls * parallelism,
        max_in_flight_per_subtask=calls,
        cpu_kpus=_cpu_kpus(load),
        in_flight_kpus=_in_flight_kpus(load),
        state_kpus=_state_kpus(load),
    )


def needed_kpus(job: StreamingJob) -> int:
    """Return the KPUs that the load of a job needs: for processor time, calls in flight, and state."""
    load = stream_load(job)
    return _whole_kpus(load, _cpu_kpus(load))


def max_calls_per_kpu(job: StreamingJob) -> float:
    """Return the calls per second that one KPU carries with half of it free."""
    load, cost = stream_load(job), catalog.job_load()
    events = load.events_per_second / load.calls_per_second
    each = cost.microseconds_per_call + events * cost.microseconds_per_event
    return _BUSY_SHARE * MICROSECONDS_PER_SECOND / each


def _topic_subtasks(load: StreamLoadFigures) -> int:
    """Return the subtasks by which a topic is divided. A new measurement of the job does not change them.

    More partitions move keys to other partitions, so the events of a key lose their order, and no partition
    can be removed (https://kafka.apache.org/documentation/#basic_ops_modify_topic).
    """
    cost = catalog.job_load()
    each = cost.partition_microseconds_per_event, cost.partition_microseconds_per_call
    return _whole_kpus(load, _busy_kpus(load, *each))


def _whole_kpus(load: StreamLoadFigures, cpu_kpus: float) -> int:
    return max(1, math.ceil(max(cpu_kpus, _in_flight_kpus(load), _state_kpus(load))))


def _cpu_kpus(load: StreamLoadFigures) -> float:
    cost = catalog.job_load()
    return _busy_kpus(load, cost.microseconds_per_event, cost.microseconds_per_call)


def _busy_kpus(load: StreamLoadFigures, microseconds_per_event: float, microseconds_per_call: float) -> float:
    busy = load.events_per_second * microseconds_per_event + load.calls_per_second * microseconds_per_call
    return busy / MICROSECONDS_PER_SECOND / _BUSY_SHARE


def _in_flight_kpus(load: StreamLoadFigures) -> float:
    """Return the KPUs for the calls in flight: by what was measured, and by the heap."""
    cost = catalog.job_load()
    calls = load.in_flight * _IN_FLIGHT_HEADROOM
    each = cost.kib_per_call_in_flight * 1024 + load.prompt_characters * _HEAP_BYTES_PER_CHARACTER
    return max(
        calls / cost.most_calls_in_flight_per_cpu,
        calls * each / (_KPU_HEAP_BYTES * _BUSY_SHARE),
    )


def _state_kpus(load: StreamLoadFigures) -> float:
    """Return the KPUs that hold the state on half of their disks, because a checkpoint copies files."""
    return load.state_bytes / (KPU_DISK_GB * GB * _BUSY_SHARE)
