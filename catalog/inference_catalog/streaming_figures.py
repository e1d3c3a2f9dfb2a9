"""What Kafka's brokers carry, and what a streaming job needs for its events and calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).resolve().parent / "data" / "streaming.json"


@dataclass(frozen=True, slots=True)
class BrokerSize:
    """A size of MSK's Express brokers.

    Parameters
    ----------
    name
        AWS's name, such as ``express.m7g.large``.
    ingress_mb_per_second, egress_mb_per_second
        Sustained throughput in MB per second, which AWS recommends not to exceed.
    partitions
        Recommended number of partitions, with their replicas.
    usd_per_hour
        US dollars per hour in us-east-1; None if it is not known.
    """

    name: str
    ingress_mb_per_second: float
    egress_mb_per_second: float
    partitions: int
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class JobLoad:
    """Processor time and memory of a streaming job, as measured, and what divides its topic.

    Parameters
    ----------
    name
        The engine, ``flink``.
    microseconds_per_event, microseconds_per_call
        Processor time for an event that is read and kept, and for a call with the write of its answer. Both
        are of the whole job after the JVM has compiled it.
    partition_microseconds_per_event, partition_microseconds_per_call
        The same, as first assumed. The partitions of a topic are computed from them, so that a new
        measurement does not change a topic that is deployed.
    kib_per_call_in_flight
        Memory of a call that waits for its answer, beside its prompt.
    most_calls_in_flight_per_cpu
        Most calls in flight per vCPU that were measured.
    machine, date, source
        Where and when the figures were measured, and with what.
    """

    name: str
    microseconds_per_event: float
    microseconds_per_call: float
    partition_microseconds_per_event: float
    partition_microseconds_per_call: float
    kib_per_call_in_flight: int
    most_calls_in_flight_per_cpu: int
    machine: str
    date: str
    source: str


@cache
def regions_without_flink_logs() -> frozenset[str]:
    """Return the regions in which CloudFormation cannot give a Flink application its log stream."""
    return frozenset(json.loads(_FILE.read_text(encoding="utf-8"))["regions_without_flink_logs"])
