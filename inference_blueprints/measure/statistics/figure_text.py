"""Measured figures as text for terminals and HTML pages."""

from __future__ import annotations

from inference_blueprints.measure.statistics.request_statistics import Measurement, Percentiles

NOT_MEASURED = "-"


def milliseconds(value: float | None) -> str:
    """Return a latency in milliseconds with at least three digits. A dash if nothing was measured."""
    return NOT_MEASURED if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"  # noqa: PLR2004


def latency_rows(measurement: Measurement) -> list[tuple[str, Percentiles]]:
    """Return the latencies with their names. Images have no tokens."""
    of_tokens = [
        ("time to first token", measurement.ttft_ms),
        ("time per output token", measurement.time_per_output_token_ms),
    ]
    return [*([] if measurement.images else of_tokens), ("end to end", measurement.end_to_end_ms)]


def amount(count: int, noun: str) -> str:
    """Return such as ``1 request`` or ``1,512 requests``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def hit_ratio(measurement: Measurement) -> str:
    """Return the share of prompt tokens that were in the KV cache."""
    ratio = measurement.prefix_cache_hit_ratio
    return "not reported by the endpoint" if ratio is None else f"{ratio:.1%} of the prompt tokens"
