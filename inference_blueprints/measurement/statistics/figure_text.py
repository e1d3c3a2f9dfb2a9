"""Measured figures as text, the same in terminals and on pages."""

from __future__ import annotations

from inference_blueprints.measurement.statistics.request_statistics import Measurement, Percentiles

_THOUSAND = 1000.0
NOT_MEASURED = "-"


def milliseconds(value: float | None) -> str:
    """Return a latency in milliseconds, three digits or more; a dash where nothing was measured."""
    return NOT_MEASURED if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"  # noqa: PLR2004


def latency_rows(measurement: Measurement) -> list[tuple[str, Percentiles]]:
    """Return the latencies with their names."""
    return [
        ("time to first token", measurement.ttft_ms),
        ("time per output token", measurement.time_per_output_token_ms),
        ("end to end", measurement.end_to_end_ms),
    ]


def hit_ratio(measurement: Measurement) -> str:
    """Return how much of the prompts was in the KV cache."""
    ratio = measurement.prefix_cache_hit_ratio
    return "the endpoint does not say" if ratio is None else f"{ratio:.1%} of the prompt tokens"


def number(value: float) -> str:
    """Write a number for people: thousands apart, no trailing zeros."""
    if abs(value) >= _THOUSAND:
        return f"{value:,.0f}"
    return f"{value:.4g}"
