"""Small plots as inline SVG. Colours are CSS classes, so that they follow the light or dark scheme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol

from inference_contracts.number_text import number

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
