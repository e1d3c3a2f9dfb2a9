"""Small plots as inline SVG, and those of one model's replay."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol

from inference_blueprints.measure.completions.completion_client import RequestOutcome
from inference_blueprints.measure.replay.trace_replay import ReplayResult
from inference_blueprints.measure.statistics import percentile
from inference_blueprints.spec.types import FIRST_TOKEN, WHOLE_REQUEST, LatencyKind, Objective
from inference_contracts.number_text import number

# Small plots as inline SVG. Colours are CSS classes, so that they follow the light or dark scheme.

WIDTH, HEIGHT = 440.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 74.0, 26.0, 12.0, 44.0
_TICKS = 5
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis from 0."""

    label: str
    """Label with its unit."""
    maximum: float
    """Largest value to show. The axis ends at the next tick."""

    @property
    def step(self) -> float:
        """Distance between ticks: 1, 2, 2.5 or 5 times a power of ten."""
        rough = (self.maximum or 1.0) / _TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        return next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))

    @property
    def ticks(self) -> list[float]:
        """Values with a tick."""
        count = math.ceil((self.maximum or 1.0) / self.step - 1e-9)
        return [number * self.step for number in range(count + 1)]

    @property
    def end(self) -> float:
        """Value at the end of the axis."""
        return self.ticks[-1]


class Layer(Protocol):
    """Marks inside a plot."""

    def svg(self, plot: Plot) -> str:
        """Return the marks as SVG elements."""
        ...


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of one width, from 0 up or on top of others."""

    bars: Sequence[tuple[float, float, float]]
    """``(start, bottom, top)`` in the axes' units."""
    width: float
    """In the horizontal axis' unit."""
    style: str
    """Class of the page."""

    def svg(self, plot: Plot) -> str:
        elements = []
        for start, bottom, top in self.bars:
            if top > bottom:
                left, right = plot.x(start), plot.x(min(start + self.width, plot.horizontal.end))
                width, height = max(right - left - 1, 0.5), plot.y(bottom) - plot.y(top)
                elements.append(
                    f'<rect class="fill-{self.style}" x="{left:.1f}" y="{plot.y(top):.1f}" '
                    f'width="{width:.1f}" height="{height:.1f}"/>'
                )
        return "".join(elements)


@dataclass(frozen=True)
class _Marks:
    """Marks at points."""

    points: Sequence[Point]
    """In the axes' units."""
    style: str
    """Class of the page."""


class Curve(_Marks):
    """A line through points."""

    def svg(self, plot: Plot) -> str:
        points = " ".join(f"{plot.x(x):.1f},{plot.y(y):.1f}" for x, y in self.points)
        return f'<polyline class="line-{self.style}" points="{points}"/>' if points else ""


class Dots(_Marks):
    """A dot at each point."""

    def svg(self, plot: Plot) -> str:
        return "".join(
            f'<circle class="fill-{self.style}" cx="{plot.x(x):.1f}" cy="{plot.y(y):.1f}" r="2.5"/>'
            for x, y in self.points
        )


class Crosses(_Marks):
    """A cross at each point, which differs from dots in shape too."""

    def svg(self, plot: Plot) -> str:
        lines = "".join(f"M{plot.x(x) - 3:.1f} {plot.y(y) - 3:.1f}l6 6m0 -6l-6 6" for x, y in self.points)
        return f'<path class="line-{self.style}" d="{lines}"/>' if lines else ""


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring around a point, with its name."""

    point: Point
    """In the axes' units."""
    label: str
    style: str
    """Class of the page."""

    def svg(self, plot: Plot) -> str:
        x, y = plot.x(self.point[0]), plot.y(self.point[1])
        below = y < HEIGHT - _BOTTOM - 40  # the space there is empty, except just above the axis
        return (
            f'<circle class="line-{self.style}" cx="{x:.1f}" cy="{y:.1f}" r="6.5"/>'
            f'<text x="{x:.1f}" y="{y + (20 if below else -11):.1f}" text-anchor="middle">'
            f"{escape(self.label)}</text>"
        )


@dataclass(frozen=True, slots=True)
class Limit:
    """A labelled vertical line at a value of the horizontal axis."""

    value: float
    label: str

    def svg(self, plot: Plot) -> str:
        x = plot.x(self.value)
        before = x > (_LEFT + WIDTH) / 2  # the label goes where there is more room
        return (
            f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
            f'<text x="{x + (-4 if before else 4):.1f}" y="{HEIGHT - _BOTTOM - 6}" '
            f'text-anchor="{"end" if before else "start"}">{escape(self.label)}</text>'
        )


@dataclass(frozen=True, slots=True)
class Plot:
    """Axes with layers of marks."""

    name: str
    """Unique on the page."""
    title: str
    description: str
    """`title`, `description`: Texts for screen readers."""
    horizontal: Axis
    vertical: Axis
    layers: Sequence[Layer]
    """From back to front."""

    def x(self, value: float) -> float:
        """Return the horizontal position of a value, in pixels."""
        return _LEFT + value / self.horizontal.end * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """Return the vertical position of a value, in pixels."""
        return HEIGHT - _BOTTOM - value / self.vertical.end * (HEIGHT - _TOP - _BOTTOM)

    def svg(self) -> str:
        """Return the plot as one SVG element, everything in it escaped."""
        name = escape(self.name)
        return (
            f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-labelledby="{name}-title {name}-text">'
            f'<title id="{name}-title">{escape(self.title)}</title>'
            f'<desc id="{name}-text">{escape(self.description)}</desc>'
            f"{self._grid()}{''.join(layer.svg(self) for layer in self.layers)}{self._labels()}</svg>"
        )

    def _grid(self) -> str:
        """Draw a line for each tick of the vertical axis."""
        return "".join(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            for y in map(self.y, self.vertical.ticks)
        )

    def _labels(self) -> str:
        """Write the ticks' values and the axes' labels."""
        below, middle = HEIGHT - _BOTTOM + 15, (_TOP + HEIGHT - _BOTTOM) / 2
        horizontal = "".join(
            f'<text x="{self.x(tick):.1f}" y="{below}" text-anchor="middle">{number(tick, 4)}</text>'
            for tick in self.horizontal.ticks
        )
        vertical = "".join(
            f'<text x="{_LEFT - 6}" y="{self.y(tick) + 4:.1f}" text-anchor="end">{number(tick, 4)}</text>'
            for tick in self.vertical.ticks
        )
        return (
            f"{horizontal}{vertical}"
            f'<text x="{(_LEFT + WIDTH - _RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
            f"{escape(self.horizontal.label)}</text>"
            f'<text transform="translate(13 {middle}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.vertical.label)}</text>"
        )


_BINS = 30
_SENT = "seconds since the start"


def plots_of(
    result: ReplayResult, objectives: Sequence[Objective], *, name: str, simulated: bool
) -> list[Plot]:
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

    def limits(kind: LatencyKind) -> list[Objective]:
        return [each for each in objectives if each.kind == kind]

    plots = [_arrivals(result.outcomes, seconds, name)]
    if answered:
        plots += [
            _throughput(answered, seconds, name, suffix),
            _distribution(
                f"{name}-ttft",
                f"Time to first token, cumulative{suffix}",
                map(_first_token, answered),
                limits(FIRST_TOKEN),
            ),
            _distribution(
                f"{name}-e2e",
                f"End to end, cumulative{suffix}",
                map(_end_to_end, answered),
                limits(WHOLE_REQUEST),
            ),
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


def _distribution(name: str, title: str, latencies: Iterable[float], limits: Sequence[Objective]) -> Plot:
    """Draw the cumulative distribution of a latency."""
    values = sorted(latencies)
    points: list[tuple[float, float]] = [(0.0, 0.0)]
    for position, value in enumerate(values):  # a step at each request
        points += [(value, points[-1][1]), (value, (position + 1) / len(values) * 100)]
    middle, high = percentile(values, 50) or 0.0, percentile(values, 90) or 0.0
    layers: list[Layer] = [Curve(points, "first")]
    for each in limits:
        text = f"objective p{each.percentile:g} {number(each.limit_ms, 4)} ms"
        layers.append(Limit(each.limit_ms, text))
    return Plot(
        name,
        title,
        f"Half of the requests within {number(middle, 4)} ms, nine of ten within {number(high, 4)} ms.",
        Axis("milliseconds", max([values[-1], *(each.limit_ms for each in limits)])),
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
