"""Size and price of streaming jobs and of their Kafka cluster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamingSummary:
    """A streaming job in the busiest minute.

    Parameters
    ----------
    job, model
        The job, and the model that it calls.
    events_per_second, sessions_per_second, calls_per_second
        Events, sessions that begin, and calls to the model.
    latency_millis
        Expected mean time of a call.
    in_flight
        Mean calls in flight: calls per second x seconds per call.
    max_in_flight, max_in_flight_per_subtask
        Most calls in flight of the job and of a subtask.
    kpus, parallelism, parallelism_per_kpu
        Kinesis Processing Units, and parallel subtasks.
    kpu_quota
        Default quota of KPUs of an application.
    calls_per_second_per_kpu
        Calls that a KPU carries with half of it free: from measurements with simulated endpoints.
    partitions
        Partitions of the topic.
    open_sessions, state_bytes
        Sessions in the state, and the size of a full checkpoint.
    stored_signals, signal_bytes
        Signals in the store, and their size.
    prompt_tokens_per_second, answer_tokens_per_second
        Tokens that the model reads and writes for the job, at the mean lengths of its workload.
    model_requests_per_second
        Requests per second that the model completes at its highest load (simulated); None without a latency
        profile.
    usd_per_day
        US dollars of the application per day, with the KPU that manages it; None if a price is not known.
    """

    job: str
    model: str
    events_per_second: float
    sessions_per_second: float
    calls_per_second: float
    latency_millis: int
    in_flight: float
    max_in_flight: int
    max_in_flight_per_subtask: int
    kpus: int
    parallelism: int
    parallelism_per_kpu: int
    kpu_quota: int
    calls_per_second_per_kpu: float
    partitions: int
    open_sessions: float
    state_bytes: float
    stored_signals: float
    signal_bytes: float
    prompt_tokens_per_second: float
    answer_tokens_per_second: float
    model_requests_per_second: float | None
    usd_per_day: float | None

    @property
    def keeps_up(self) -> bool | None:
        """Whether the model completes as many requests as the job sends; None if its speed is unknown."""
        full = self.model_requests_per_second
        return None if full is None else self.calls_per_second <= full


@dataclass(frozen=True, slots=True)
class KafkaSummary:
    """The Kafka cluster of a platform.

    Parameters
    ----------
    brokers, instance_type
        Express brokers that the platform creates; None for a cluster that exists.
    ingress_mb_per_second, egress_mb_per_second
        MB per second that are written and read.
    ingress_share, egress_share, partitions_share
        Largest use of what the brokers carry, as a fraction; None for a cluster that exists.
    partitions
        Partitions with their replicas.
    connections_per_broker
        Connections of the jobs to each broker.
    stored_gb
        Events that are kept.
    usd_per_day
        US dollars of brokers, written data and storage per day; None if a price is not known.
    """

    brokers: int | None
    instance_type: str | None
    ingress_mb_per_second: float
    egress_mb_per_second: float
    ingress_share: float | None
    egress_share: float | None
    partitions_share: float | None
    partitions: int
    connections_per_broker: int
    stored_gb: float
    usd_per_day: float | None
