"""Price of the signal store in ElastiCache serverless for Valkey.

Prices of us-east-1 (https://aws.amazon.com/elasticache/pricing/, 2026-06): data per hour, at least 100 MB,
and processing units. A read or a write uses one unit per KB.
"""

from __future__ import annotations

from inference_blueprints.report.figures import SignalStorePrice
from inference_blueprints.spec.types import SignalStore

USD_PER_GB_HOUR = 0.084
USD_PER_MILLION_UNITS = 0.0023
_LEAST_GB = 0.1


def signal_store_price(store: SignalStore | None) -> SignalStorePrice | None:
    """Return the price of a store; None if there is none."""
    if store is None:
        return None
    return SignalStorePrice(
        max_gb=store.valkey.max_gb,
        usd_per_hour_min=_LEAST_GB * USD_PER_GB_HOUR,
        usd_per_hour_max=store.valkey.max_gb * USD_PER_GB_HOUR,
        usd_per_million_kb=USD_PER_MILLION_UNITS,
    )
