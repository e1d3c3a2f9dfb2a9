"""The plots of one model's replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inference_blueprints.measure.charts.svg_chart import Axis, Bars, Curve, Dots, Layer, Limit, Plot
from inference_blueprints.measure.completions.request_outcome import RequestOutcome
from inference_blueprints.measure.replay.replay_result import ReplayResult
from inference_blueprints.measure.statistics.percentiles import percentile
from inference_blueprints.spec.types import Objectives
from inference_contracts.number_text import number

_BINS = 30
_SENT = "seconds since the start"


def plots_of(result: ReplayResult, objectives: Objectives, *, name: str, simulated: bool) -> list[Plot]:
    """Return the plots of a model's replay.

    objectives: Latency objectives of the blueprint. They are drawn as limits.
    name: Prefix of the plots' names, unique on the page.
    simulated: Whether the latencies come from a simulated engine. If so, every title is marked.
    Returns: Arrivals, throughput, distributions of both latencies, latency over time and cache hits. Plots
        without data are left out.
    """
    seconds = result.elapsed_seconds
    answered = result.answered
    suffix = " (simulated)" if simulated else ""
    limit = objectives.time_to_first_token_p90_ms
    plots = [_arrivals(result.outcomes, seconds, name)]
    if answered:
        plots += [
            _throughput(answered, seconds, name, suffix),
            _distribution(
                f"{name}-ttft", f"Time to first token, cumulative{suffix}", map(_first_token, answered), limit
            ),
            _distribution(f"{name}-e2e", f"End to end, cumulative{suffix}", map(_end_to_end, answered)),
            _over_time(answered, seconds, name, suffix),
        ]
    cached = [outcome for outcome in answered if outcome.usage and outcome.usage.cached_tokens is not None]
    return [*plots, _cache_hits(cached, seconds, name)] if cached else plots


def _first_token(outcome: RequestOutcome) -> float:
    return outcome.time_to_first_token_ms or 0.0


def _end_to_end(outcome: RequestOutcome) -> float:
    return outcome.end_to_end_ms or 0.0


def _arrivals(outcomes: Sequence[RequestOutcome], seconds: float, name: str) -> Plot:
    """Count requests by send time, failed ones on top."""
    width = seconds / _BINS
    answered, failed = [0] * (_BINS + 1), [0] * (_BINS + 1)
    for outcome in outcomes:
        counts = failed if outcome.failure else answered
        counts[int(outcome.sent_seconds / width)] += 1
    good = [(position * width, 0.0, float(count)) for position, count in enumerate(answered)]
    bad = [
        (position * width, float(below), float(below + count))
        for position, (below, count) in enumerate(zip(answered, failed, strict=True))
    ]
    total = len(outcomes)
    return Plot(
        f"{name}-arrivals",
        "Requests by send time",
        f"{total} requests over {seconds:.0f} seconds, {sum(failed)} of them failed (on top, in red).",
        Axis(_SENT, seconds),
        Axis(f"requests in {width:.1f} s", max(top for _, _, top in bad)),
        [Bars(good, width, "first"), Bars(bad, width, "bad")],
    )


def _throughput(answered: Sequence[RequestOutcome], seconds: float, name: str, suffix: str) -> Plot:
    """Spread each answer's tokens evenly between its first and its last."""
    width = seconds / _BINS
    tokens = [0.0] * _BINS
    for outcome in answered:
        start, end = outcome.first_token_seconds, outcome.last_token_seconds
        if outcome.usage is None or start is None or end is None:
            continue
        span = max(end - start, 1e-9)
        for position in range(_BINS):
            overlap = min(end, (position + 1) * width) - max(start, position * width)
            tokens[position] += max(0.0, overlap) / span * outcome.usage.completion_tokens
    points = [((position + 0.5) * width, count / width) for position, count in enumerate(tokens)]
    peak = max(rate for _, rate in points)
    return Plot(
        f"{name}-throughput",
        f"Output tokens per second, all accelerators together, at the replayed load{suffix}",
        f"At most {number(peak, 4)} tokens per second.",
        Axis(_SENT, seconds),
        Axis("tokens per second", peak),
        [Curve(points, "second")],
    )


def _distribution(name: str, title: str, latencies: Iterable[float], limit: float | None = None) -> Plot:
    """Draw the cumulative distribution of a latency."""
    values = sorted(latencies)
    points: list[tuple[float, float]] = [(0.0, 0.0)]
    for position, value in enumerate(values):  # a step at each request
        points += [(value, points[-1][1]), (value, (position + 1) / len(values) * 100)]
    middle, high = percentile(values, 50) or 0.0, percentile(values, 90) or 0.0
    layers: list[Layer] = [Curve(points, "first")]
    if limit is not None:
        layers.append(Limit(limit, f"objective p90 {number(limit, 4)} ms"))
    return Plot(
        name,
        title,
        f"Half of the requests within {number(middle, 4)} ms, nine of ten within {number(high, 4)} ms.",
        Axis("milliseconds", max(values[-1], limit or 0.0)),
        Axis("% of requests", 100.0),
        layers,
    )


def _over_time(answered: Sequence[RequestOutcome], seconds: float, name: str, suffix: str) -> Plot:
    """Draw each request's time to first token at its send time."""
    points = [(outcome.sent_seconds, _first_token(outcome)) for outcome in answered]
    slowest = max(points, key=lambda point: point[1])
    return Plot(
        f"{name}-over-time",
        f"Time to first token by send time{suffix}",
        f"The slowest request took {number(slowest[1], 4)} ms and was sent after {slowest[0]:.0f} seconds.",
        Axis(_SENT, seconds),
        Axis("milliseconds", slowest[1]),
        [Dots(points, "first")],
    )


def _cache_hits(answered: Sequence[RequestOutcome], seconds: float, name: str) -> Plot:
    """Draw the share of each prompt that was in the KV cache."""
    points = [
        (outcome.sent_seconds, (outcome.usage.cached_tokens or 0) / outcome.usage.prompt_tokens * 100)
        for outcome in answered
        if outcome.usage
    ]
    hits = sum(share > 0 for _, share in points)
    return Plot(
        f"{name}-cache",
        "Share of prompt tokens found in the KV cache, per request",
        f"{hits} of {len(points)} requests found part of their prompt in the cache.",
        Axis(_SENT, seconds),
        Axis("% of the prompt", 100.0),
        [Dots(points, "second")],
    )
