"""Size and price of the Kafka cluster."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.report.plan.cells import UNKNOWN, usd
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.pricing.streaming_price import brokers_usd_per_day
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.streaming import broker_load
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class KafkaSummary:
    """The Kafka cluster of a platform."""

    brokers: int | None
    instance_type: str | None
    """`brokers`, `instance_type`: Express brokers that the platform creates; None for a cluster that
    exists."""
    ingress_mb_per_second: float
    egress_mb_per_second: float
    """`ingress_mb_per_second`, `egress_mb_per_second`: MB per second that are written and read."""
    ingress_share: float | None
    egress_share: float | None
    partitions_share: float | None
    """`ingress_share`, `egress_share`, `partitions_share`: Largest use of what the brokers carry, as a
    fraction; None for a cluster that exists."""
    partitions: int
    """Partitions with their replicas."""
    connections_per_broker: int
    """Connections of the jobs to each broker."""
    stored_gb: float
    """Events that are kept."""
    usd_per_day: float | None
    """US dollars of brokers, written data and storage per day; None if a price is not known."""


def _summarise(basis: PlanBasis) -> KafkaSummary | None:
    """Return the figures of the Kafka cluster; None without one."""
    spec = basis.spec
    if spec.kafka is None:
        return None
    load, express = broker_load(spec.streaming), spec.kafka.express
    size = catalog.broker_sizes()[express.instance_type] if express else None
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
        usd_per_day=brokers_usd_per_day(count, size, load, basis.services) if count and size else None,
        **carried,
    )


def kafka_brokers(summary: PlanSummary) -> TextTable:
    """Return the table of the Kafka cluster."""
    kafka = summary[KAFKA]
    return TextTable(
        "Kafka",
        ("brokers",),
        (
            "written, MB/s",
            "read, MB/s",
            "partitions with replicas",
            "connections per broker",
            "events kept, GB",
            "largest share of a broker's limits",
            "USD per day",
        ),
        (_kafka_row(kafka),) if kafka else (),
        (
            "Limits of Express brokers: sustained throughput and recommended partitions of their size. "
            "Price: brokers, written data and storage at the peak all day.",
        ),
    )


def _kafka_row(kafka: KafkaSummary) -> tuple[str, ...]:
    shares = [kafka.ingress_share, kafka.egress_share, kafka.partitions_share]
    known = [share for share in shares if share is not None]
    return (
        _brokers(kafka),
        f"{kafka.ingress_mb_per_second:,.3f}",
        f"{kafka.egress_mb_per_second:,.3f}",
        f"{kafka.partitions:,}",
        f"{kafka.connections_per_broker:,}",
        f"{kafka.stored_gb:,.1f}",
        f"{100 * max(known):,.1f} %" if known else UNKNOWN,
        usd(kafka.usd_per_day) if kafka.brokers else "yours",
    )


def _brokers(kafka: KafkaSummary) -> str:
    return f"{kafka.brokers} x {kafka.instance_type}" if kafka.brokers else "existing cluster"


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    if kafka := summary[KAFKA]:
        yield Label.STREAMING, f"Kafka: {_brokers(kafka)}"


KAFKA = PlanSection("kafka", _summarise, _in_short, (kafka_brokers,))
