"""Price of the signal store in ElastiCache serverless for Valkey.

Prices of us-east-1 (https://aws.amazon.com/elasticache/pricing/, 2026-06): data per hour, at least 100 MB,
and processing units. A read or a write uses one unit per KB.
"""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.tables import TextTable
from inference_blueprints.spec.types import SignalStore
from inference_contracts.records import dataclass

USD_PER_GB_HOUR = 0.084
USD_PER_MILLION_UNITS = 0.0023
_MIN_GB = 0.1


@dataclass(frozen=True, slots=True)
class SignalStorePrice:
    """Price of the signal store."""

    max_gb: int
    """Maximum size."""
    usd_per_hour_min: float
    usd_per_hour_max: float
    """`usd_per_hour_min`, `usd_per_hour_max`: Price while it is empty, and while it is full."""
    usd_per_million_kb: float


def _price(store: SignalStore | None) -> SignalStorePrice | None:
    """Return the price of a store; None if there is none."""
    if store is None:
        return None
    return SignalStorePrice(
        max_gb=store.valkey.max_gb,
        usd_per_hour_min=_MIN_GB * USD_PER_GB_HOUR,
        usd_per_hour_max=store.valkey.max_gb * USD_PER_GB_HOUR,
        usd_per_million_kb=USD_PER_MILLION_UNITS,
    )


def signal_store(summary: PlanSummary) -> TextTable:
    """Return the table of the signal store, which has a row if the blueprint has one."""
    price = summary[SIGNAL_STORE]
    rows = () if price is None else (_signal_store_row(price),)
    return TextTable(
        "Signal store",
        ("store",),
        ("maximum size, GB", "USD per hour, empty", "USD per hour, full", "USD per million KB"),
        rows,
        (
            '"Cost of a month" counts an empty store. Prices of us-east-1: per GB stored and hour, and per '
            "KB read or written. A write that runs a script can count as more.",
        ),
    )


def _signal_store_row(price: SignalStorePrice) -> tuple[str, ...]:
    return (
        "Valkey",
        f"{price.max_gb:,}",
        f"{price.usd_per_hour_min:.4f}",
        f"{price.usd_per_hour_max:,.2f}",
        f"{price.usd_per_million_kb:.4f}",
    )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    if price := summary[SIGNAL_STORE]:
        yield (
            Label.SIGNALS,
            f"Valkey of at most {price.max_gb:,} GB, {price.usd_per_hour_min:.3f} (empty) to "
            f"{price.usd_per_hour_max:,.2f} USD an hour",
        )


SIGNAL_STORE = PlanSection(
    "signalStore", lambda basis: _price(basis.spec.signal_store), _in_short, (signal_store,)
)
