"""Prices of the AWS services around the accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
