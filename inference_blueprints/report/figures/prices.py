"""Prices in the plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PriceNote:
    """Source of the prices, and costs that are not included.

    Parameters
    ----------
    region, date, source
        Origin of the price table.
    blueprint_region
        Region of the platform.
    not_included
        Costs besides the pools' nodes.
    rates
        Source and date of the user's own rates; empty without a rates file.
    """

    region: str
    date: str
    source: str
    blueprint_region: str
    not_included: tuple[str, ...]
    rates: str = ""

    @property
    def note(self) -> str:
        """The source of the prices, and whether they are for the platform's region."""
        rates = f"Your rates take precedence: {self.rates}. " if self.rates else ""
        facts = f"{rates}On-demand prices of {self.region}, {self.date}, from {self.source}."
        if self.region == self.blueprint_region:
            return facts
        return f"{facts} The blueprint deploys to {self.blueprint_region}, where prices may differ."


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of all pools.

    Parameters
    ----------
    nodes_used, nodes_max, accelerators_used, accelerators_max
        Sums over the pools.
    usd_per_hour_used, usd_per_hour_max
        Sums over the pools whose price is known; None if no price is known.
    usd_per_hour_used_at_most
        The most that all used nodes can cost; None if a pool has no known bound.
    without_used, without_max
        Pools whose price is unknown, left out of the respective sum.
    """

    nodes_used: int
    nodes_max: int
    accelerators_used: int
    accelerators_max: int
    usd_per_hour_used: float | None
    usd_per_hour_max: float | None
    without_used: tuple[str, ...]
    without_max: tuple[str, ...]
    usd_per_hour_used_at_most: float | None


@dataclass(frozen=True, slots=True)
class SignalStorePrice:
    """Price of the signal store.

    Parameters
    ----------
    max_gb
        Maximum size.
    usd_per_hour_min, usd_per_hour_max
        Price while it is empty, and while it is full.
    """

    max_gb: int
    usd_per_hour_min: float
    usd_per_hour_max: float
    usd_per_million_kb: float


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """Simulated price of a million tokens of a deployment, at its share of the stated peak.

    Parameters
    ----------
    requests_per_second
        Served rate: the deployment's share of the peak, or the capacity of its workers if that is less.
    peak_requests_per_second
        The share of the peak, by workers.
    concurrent_requests
        Requests at once in a worker, at that rate.
    time_per_output_token_ms
        Mean time between two tokens of an answer, at that rate.
    usd_per_million_tokens, usd_per_million_output_tokens
        Over all tokens, and if output carries all; None when a price is unknown.
    usd_per_million_tokens_full
        Over all tokens, with every worker as busy as it can be.
    """

    model: str
    deployment: str
    requests_per_second: float
    peak_requests_per_second: float
    concurrent_requests: int
    time_per_output_token_ms: float
    usd_per_million_tokens: float | None
    usd_per_million_output_tokens: float | None
    usd_per_million_tokens_full: float | None

    @property
    def carries_the_peak(self) -> bool:
        """Whether the workers serve the whole share of the peak."""
        return self.requests_per_second >= self.peak_requests_per_second
