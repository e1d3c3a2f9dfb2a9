"""Prices of the AWS services around the accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServicePrice:
    """The list price of one unit of a service in one region.

    Parameters
    ----------
    name
        Key in the catalogue, such as ``nat_gateway``.
    usd
        US dollars per unit.
    unit
        Billed unit, such as ``hour``.
    usage_type
        AWS's name of the unit, without the prefix of the region.
    source, date
        Page of the price, and the date of its publication or, as a year, of its reading.
    """

    name: str
    usd: float
    unit: str
    usage_type: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class ServicePrices:
    """Prices of services in one region.

    Parameters
    ----------
    region
        Region of the prices. Other regions may have other prices.
    date, source
        Date and source of the prices.
    prices
        Price by the catalogue's key.
    """

    region: str
    date: str
    source: str
    prices: Mapping[str, ServicePrice]

    def usd(self, name: str) -> float:
        """Return the US dollars of one unit."""
        return self.prices[name].usd
