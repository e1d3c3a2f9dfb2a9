"""What Kafka's brokers carry, and what a streaming job needs for its events and calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).resolve().parent / "data" / "streaming.json"


@dataclass(frozen=True, slots=True)
class BrokerSize:
    """A size of MSK's Express brokers."""

    name: str
    """AWS's name, such as ``express.m7g.large``."""
    ingress_mb_per_second: float
    egress_mb_per_second: float
    """`ingress_mb_per_second`, `egress_mb_per_second`: Sustained throughput in MB per second, which AWS
    recommends not to exceed."""
    partitions: int
    """Recommended number of partitions, with their replicas."""
    usd_per_hour: float | None
    """US dollars per hour in us-east-1; None if it is not known."""


@dataclass(frozen=True, slots=True)
class JobLoad:
    """Processor time and memory of a streaming job, as measured, and what divides its topic."""

    name: str
    """The engine, ``flink``."""
    microseconds_per_event: float
    microseconds_per_call: float
    """`microseconds_per_event`, `microseconds_per_call`: Processor time for an event that is read and kept,
    and for a call with the write of its answer. Both are of the whole job after the JVM has compiled it."""
    partition_microseconds_per_event: float
    partition_microseconds_per_call: float
    """`partition_microseconds_per_event`, `partition_microseconds_per_call`: The same, as first assumed. The
    partitions of a topic are computed from them, so that a new measurement does not change a topic that is
    deployed."""
    kib_per_call_in_flight: int
    """Memory of a call that waits for its answer, beside its prompt."""
    most_calls_in_flight_per_cpu: int
    """Most calls in flight per vCPU that were measured."""
    machine: str
    date: str
    source: str
    """`machine`, `date`, `source`: Where and when the figures were measured, and with what."""


@cache
def regions_without_flink_logs() -> frozenset[str]:
    """Return the regions in which CloudFormation cannot give a Flink application its log stream."""
    return frozenset(json.loads(_FILE.read_text(encoding="utf-8"))["regions_without_flink_logs"])
