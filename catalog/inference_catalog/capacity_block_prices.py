"""Prices of Capacity Blocks, for instance types that have no on-demand price."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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
