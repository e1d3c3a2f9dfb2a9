"""The price of a node that runs, by the labels that Karpenter gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from inference_blueprints.report.pricing.rates import Prices
from inference_blueprints.spec.types import Pool

#: Karpenter's capacity types. https://karpenter.sh/v1.15/concepts/nodepools/#capacity-type
_ON_DEMAND: Final = "onDemand"
_PURCHASES: Final = {"on-demand": _ON_DEMAND, "spot": "spot"}
_RESERVED: Final = "reserved"

#: Takes the pool, the instance type and Karpenter's capacity type of a node. Returns US dollars per hour;
#: None if the price is not known.
NodeRate = Callable[[str, str, str], float | None]


def node_rate(prices: Prices, pools: Sequence[Pool]) -> NodeRate:
    """Return what tells the price of a node.

    Parameters
    ----------
    prices
        Known prices, such as those of the user's rates file.
    pools
        Section of the blueprint. Karpenter calls reservations and Capacity Blocks `reserved`; the pool's
        purchase option says which of both it is.
    """
    reserved = {pool.name: pool.purchase.chosen for pool in pools}

    def rate(pool: str, instance_type: str, capacity_type: str) -> float | None:
        purchase = reserved.get(pool) if capacity_type == _RESERVED else _PURCHASES.get(capacity_type)
        return None if purchase is None else prices.usd_per_hour(instance_type, purchase)

    return rate


def pools_without_price(prices: Prices, pools: Sequence[Pool]) -> list[str]:
    """Return the names of pools none of whose nodes has a known price.

    Parameters
    ----------
    prices
        Known prices.
    pools
        Section of the blueprint.
    """
    return [
        pool.name
        for pool in pools
        if not any(
            prices.usd_per_hour(each.name, purchase) is not None
            for each in pool.types
            for purchase in _purchases(pool)
        )
    ]


def _purchases(pool: Pool) -> Iterator[str]:
    yield pool.purchase.chosen
    if pool.purchase.spot is not None and pool.purchase.spot.on_demand_fallback:
        yield _ON_DEMAND
