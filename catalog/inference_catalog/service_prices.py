"""Prices of the AWS services around the accelerators."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from inference_contracts.records import dataclass

_FILE = Path(__file__).resolve().parent / "data" / "capacity_block_prices.json"


@dataclass(frozen=True, slots=True)
class CapacityBlockPrice:
    """The price of an instance in a Capacity Block. AWS changes it with supply and demand."""

    usd_per_hour: float
    """Reservation fee in US dollars per hour, for Linux."""
    region: str
    date: str
    source: str
    """`region`, `date`, `source`: Where, when and by whom it was stated."""


def capacity_block_price(instance_type: str) -> CapacityBlockPrice | None:
    """Return the price of an instance type in a Capacity Block; None if the catalogue has none.

    Parameters
    ----------
    instance_type
        Such as ``trn2.48xlarge``.
    """
    document = _document()
    price = document["usd_per_hour"].get(instance_type)
    if price is None:
        return None
    return CapacityBlockPrice(price, document["region"], document["date"], document["source"])


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return document


@dataclass(frozen=True, slots=True)
class ServicePrice:
    """The list price of one unit of a service in one region."""

    name: str
    """Key in the catalogue, such as ``nat_gateway``."""
    usd: float
    """US dollars per unit."""
    unit: str
    """Billed unit, such as ``hour``."""
    usage_type: str
    """AWS's name of the unit, without the prefix of the region."""
    source: str
    """Page of the price."""
    date: str
    """The date of its publication or, as a year, of its reading."""


@dataclass(frozen=True, slots=True)
class ServicePrices:
    """Prices of services in one region."""

    region: str
    """Region of the prices. Other regions may have other prices."""
    date: str
    source: str
    """`date`, `source`: Date and source of the prices."""
    prices: Mapping[str, ServicePrice]
    """Price by the catalogue's key."""

    def usd(self, name: str) -> float:
        """Return the US dollars of one unit."""
        return self.prices[name].usd
