"""Streaming jobs: their load, their size, and what they demand of Kafka."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Final

import inference_catalog as catalog
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.sections.streaming.rules import ZONES_OF_EXPRESS
from inference_blueprints.spec.types import ExpressKafka, StreamingJob
from inference_catalog import BrokerSize
from inference_contracts.batch_limits import BYTES_PER_TOKEN
from inference_contracts.records import dataclass
from inference_contracts.units import (
    GB,
    MB,
    MICROSECONDS_PER_SECOND,
    MILLISECONDS_PER_SECOND,
    SECONDS_PER_HOUR,
)

# The load of a streaming job, from the events that the blueprint states.
#
# In flight are as many calls as start during the mean time of a call: calls per second x seconds per call
# (J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9(3), 1961). The same law
# gives the open sessions.

#: Kafka's record and its share of a batch, without headers:
#: https://kafka.apache.org/documentation/#recordbatch
_BYTES_BESIDE_AN_EVENT: Final = 70
#: Key, fields and overhead of a hash in Valkey, and what a record of a signal has beside its value.
_BYTES_BESIDE_A_SIGNAL: Final = 500
#: Fields of a session's state beside its events and its prompt.
_BYTES_BESIDE_A_SESSION: Final = 300


@dataclass(frozen=True, slots=True)
class StreamLoadFigures:
    """What a job has to carry in the busiest minute."""

    events_per_second: float
    sessions_per_second: float
    """Sessions that begin."""
    open_sessions: float
    """Sessions in the job's state."""
    calls_per_second: float
    """Calls to the model: one for each version of a session's prompt."""
    in_flight: float
    """Mean number of calls that wait for their answer."""
    event_bytes: float
    """Mean size of an event in Kafka."""
    ingress_bytes_per_second: float
    """Bytes that arrive in the topic."""
    state_bytes: float
    """State of all open sessions, which is the size of a full checkpoint."""
    stored_signals: float
    """Signals in the store that have not expired."""
    signal_bytes: float
    """Their size."""
    prompt_characters: int
    """Longest prompt."""


def stream_load(job: StreamingJob) -> StreamLoadFigures:
    """Return the load of a job.

    job: The job in the blueprint.
    """
    load, session = job.load, job.session
    events, sessions = load.events_per_second, load.events_per_second / load.events_per_session
    event_bytes = sum(map(_size, job.events.examples)) / len(job.events.examples)
    # A session is kept while events arrive, and until the gap after the last one.
    open_sessions = sessions * (load.session_seconds + session.gap_seconds)
    # A timer starts with the first event after a prompt, and the events until it ends share a prompt. If
    # events arrive at random, a prompt holds 1 + (events of a session per second) x (time) of them.
    rate = load.events_per_session / load.session_seconds
    calls = events / (1 + rate * session.debounce_millis / MILLISECONDS_PER_SECOND)
    prompt_characters = job.prompt.max_input_tokens * BYTES_PER_TOKEN
    kept = min(load.events_per_session, session.max_events)
    # The state holds the kept events and the prompt with their texts. On average, half of a session is over.
    session_bytes = _BYTES_BESIDE_A_SESSION + min(
        2 * kept * event_bytes, kept * event_bytes + prompt_characters
    )
    stored = sessions * (job.signal.ttl_seconds + load.session_seconds)
    return StreamLoadFigures(
        events_per_second=events,
        sessions_per_second=sessions,
        open_sessions=open_sessions,
        calls_per_second=calls,
        in_flight=calls * load.latency_millis / MILLISECONDS_PER_SECOND,
        event_bytes=event_bytes,
        ingress_bytes_per_second=events * (event_bytes + _BYTES_BESIDE_AN_EVENT),
        state_bytes=open_sessions * session_bytes,
        stored_signals=stored,
        signal_bytes=stored * (job.answer.max_tokens * BYTES_PER_TOKEN + _BYTES_BESIDE_A_SIGNAL),
        prompt_characters=prompt_characters,
    )


def _size(event: object) -> int:
    # A value that does not fit the types has no length.
    return len(json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=len).encode())


# The size of a streaming job on Managed Service for Apache Flink, and of its topic.
#
# A Kinesis Processing Unit (KPU) has 1 vCPU, 3 GB of heap of its 4 GB of memory, and 50 GB of disk
# (https://docs.aws.amazon.com/managed-flink/latest/java/how-resources.html). An application may have 64 KPUs
# unless AWS raises this quota, at most 8 parallel subtasks per KPU, and a parallelism of at most 256
# (https://docs.aws.amazon.com/managed-flink/latest/java/how-scaling.html).

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

    shards: int
    """Applications. The other figures are those of one of them, except for those of the topic."""
    kpus: int
    """KPUs at the start, without the one that AWS adds for the application's management."""
    parallelism: int
    """Parallel subtasks."""
    parallelism_per_kpu: int
    """How many of them share a KPU."""
    partitions: int
    """Partitions of each topic."""
    max_in_flight: int
    max_in_flight_per_subtask: int
    """`max_in_flight`, `max_in_flight_per_subtask`: Most calls to the model at a time, of an application and
    of one subtask."""
    cpu_kpus: float
    in_flight_kpus: float
    state_kpus: float
    """`cpu_kpus`, `in_flight_kpus`, `state_kpus`: KPUs that processor time, calls in flight and state need;
    the largest decides. Those of the whole job."""

    @property
    def all_kpus(self) -> int:
        """KPUs of all applications."""
        return self.shards * self.kpus


def job_size(job: StreamingJob) -> StreamingJobSize:
    """Return the size of a job; keys of the blueprint count first.

    job: The job in the blueprint. Rules refuse sizes that cannot work.
    """
    load = stream_load(job)
    needed = needed_kpus(job)
    parallelism = job.parallelism or needed
    subtasks = job.parallelism * job.shards if job.parallelism else _topic_subtasks(load)
    partitions = max(_MIN_PARTITIONS, _PARTITIONS_PER_SUBTASK * subtasks)
    # Each shard has as many.
    partitions = math.ceil(partitions / job.shards) * job.shards
    per_kpu = min(MAX_SUBTASKS_PER_KPU, max(1, parallelism // needed))
    calls = max(_MIN_IN_FLIGHT, math.ceil(load.in_flight * _IN_FLIGHT_HEADROOM / parallelism / job.shards))
    return StreamingJobSize(
        shards=job.shards,
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
    """Return the KPUs that the load needs in each application of a job: processor time, calls, and state."""
    load = stream_load(job)
    return max(1, math.ceil(_needed(load, _cpu_kpus(load)) / job.shards))


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
    return max(1, math.ceil(_needed(load, _busy_kpus(load, *each))))


def _needed(load: StreamLoadFigures, cpu_kpus: float) -> float:
    return max(cpu_kpus, _in_flight_kpus(load), _state_kpus(load))


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


#: Replicas of a partition of an Express cluster, which AWS fixes.
_REPLICAS: Final = 3
#: Partitions of a topic of dead letters: few records, and no order is needed among them.
DEAD_LETTER_PARTITIONS: Final = 3
#: Longest dead letter, in bytes: `DeadLetters.MOST_BYTES` of the job. A longer one has no request.
MAX_DEAD_LETTER_BYTES: Final = 1_040_000
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
    dead_letter_mb_per_second: float
    """MB of dead letters per second while a model is away for longer than events wait, beside the events."""


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
        for topic in job.topic_names.all_events:
            readers.setdefault(topic, []).append(job)
    return readers


def broker_load(jobs: Iterable[StreamingJob]) -> BrokerLoad:
    """Return what jobs demand. A topic that several jobs read is written once."""
    jobs = [job for _, job in usable(jobs)]
    written, stored, egress = 0.0, 0.0, 0.0
    for readers in _readers(jobs).values():
        # How a job's events are divided among its topics is not stated: evenly.
        loads = [
            stream_load(job).ingress_bytes_per_second / len(job.topic_names.all_events) for job in readers
        ]
        written += max(loads)
        stored += max(loads) * readers[-1].events.retention_hours * SECONDS_PER_HOUR
        egress += sum(loads)
    sizes = [job_size(job) for job in jobs]
    connections = sum(size.parallelism * size.shards for size in sizes) * _CONNECTIONS_PER_SUBTASK
    partitions = sum(topic_partitions(jobs).values()) + len(jobs) * DEAD_LETTER_PARTITIONS
    letters = sum(map(dead_letter_load, jobs))
    return BrokerLoad(
        ingress_mb_per_second=written / MB,
        egress_mb_per_second=egress / MB,
        partitions=partitions * _REPLICAS,
        stored_gb=stored / GB,
        connections=connections,
        dead_letter_mb_per_second=letters / MB,
    )


def dead_letter_load(job: StreamingJob) -> float:
    """Return the bytes of dead letters per second while the model is away for longer than events wait.

    With a time to wait, a session has a dead letter at its end and at most one for each such time before.
    """
    load = stream_load(job)
    letters = load.calls_per_second
    if job.max_age_seconds:
        each = 1 + job.load.session_seconds / job.max_age_seconds
        letters = min(letters, load.sessions_per_second * each)
    return letters * min(dead_letter_bytes(job), MAX_DEAD_LETTER_BYTES)


def dead_letter_bytes(job: StreamingJob) -> int:
    """Return the size of the longest dead letter with its request, in bytes."""
    schema = _size(job.answer.json_schema) if job.answer.json_schema else 0
    prompt = stream_load(job).prompt_characters
    return prompt + len((job.prompt.system or "").encode()) + schema + _BYTES_BESIDE_A_SIGNAL


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
