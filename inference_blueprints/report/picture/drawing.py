"""Shapes of a picture and how they are written as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Literal, Protocol

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
INK = "#16191f"
MUTED = "#49525c"

#: Advance widths of Helvetica in thousandths of the font size (Adobe's font metrics), by character.
_WIDTHS = {
    character: width
    for characters, width in (
        ("ijl'|", 222),
        (" ftI.,:;/!", 278),
        ('r-()[]"', 333),
        ("ckszvxyJ", 500),
        ("FTZ", 611),
        ("ABEKPSVXY", 667),
        ("wCDHNRU", 722),
        ("GOQ", 778),
        ("mM", 833),
        ("W", 944),
        ("…—@%", 1000),
    )
    for character in characters
}
_OTHER_WIDTH = 556
_BOLD = 1.09
_ASCENT, _DESCENT = 0.76, 0.24


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimate how wide a line of text is.

    size: Font size in pixels.
    bold: Whether it is bold.
    Returns: Pixels, for Helvetica and the fonts that share its metrics.
    """
    thousandths = sum(_WIDTHS.get(character, _OTHER_WIDTH) for character in text)
    return thousandths * size / 1000 * (_BOLD if bold else 1.0)


def shorten(text: str, size: float, width: float, *, bold: bool = False) -> str:
    """Shorten a line with an ellipsis to the width that there is; parameters as in `text_width`."""
    if text_width(text, size, bold=bold) <= width:
        return text
    while text and text_width(f"{text}…", size, bold=bold) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def wrap(text: str, size: float, width: float) -> list[str]:
    """Break a text into lines between words; parameters as in `text_width`."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, size) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def wrap_name(name: str, size: float, width: float) -> list[str]:
    """Break a bold name into lines after its separators; parameters as in `text_width`."""
    lines = [""]
    for part in re.findall(r"[^/.-]*[/.-]?", name):
        if lines[-1] and text_width(lines[-1] + part, size, bold=True) > width:
            lines.append(part)
        else:
            lines[-1] += part
    return lines


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of the picture, in pixels from its top left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height

    def overlaps(self, other: Area) -> bool:
        """Return whether two areas share more than an edge."""
        across = self.x < other.right and other.x < self.right
        return across and self.y < other.bottom and other.y < self.bottom


class SvgShape(Protocol):
    """Anything that can be drawn."""

    def svg(self) -> str:
        """Return the shape as an SVG element."""
        ...


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle."""

    area: Area
    fill: str = "none"
    stroke: str = "none"
    dashes: str = ""
    """SVG dash pattern; empty for a solid line."""
    radius: float = 0
    stroke_width: float = 1.5
    """`radius`, `stroke_width`: Of the corners and the line, in pixels."""

    def svg(self) -> str:
        """Return the shape as an SVG element."""
        area = self.area
        return _element(
            "rect",
            x=area.x,
            y=area.y,
            width=area.width,
            height=area.height,
            rx=self.radius or None,
            fill=self.fill,
            stroke=self.stroke,
            stroke_width=self.stroke_width if self.stroke != "none" else None,
            stroke_dasharray=self.dashes or None,
        )


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text."""

    x: float
    y: float
    """`x`, `y`: Its anchor on the baseline."""
    text: str
    """The line as it is shown."""
    size: float = 13
    """Font size in pixels."""
    bold: bool = False
    colour: str = INK
    anchor: Literal["start", "middle", "end"] = "start"
    """Which part of the line is at ``x``."""
    whole: str = ""
    """The line before it was cut, shown when the pointer rests on it."""

    @property
    def area(self) -> Area:
        """The estimated space that the line takes."""
        width = text_width(self.text, self.size, bold=self.bold)
        left = self.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]
        return Area(left, self.y - _ASCENT * self.size, width, (_ASCENT + _DESCENT) * self.size)

    def svg(self) -> str:
        """Return the shape as an SVG element."""
        tooltip = f"<title>{escape(self.whole)}</title>" if self.whole not in {"", self.text} else ""
        return _element(
            "text",
            tooltip + escape(self.text, quote=False),
            x=self.x,
            y=self.y,
            font_size=self.size,
            font_weight="bold" if self.bold else None,
            fill=self.colour,
            text_anchor=None if self.anchor == "start" else self.anchor,
        )


@dataclass(frozen=True, slots=True)
class Circle:
    """A filled circle around a point."""

    x: float
    y: float
    radius: float
    fill: str

    def svg(self) -> str:
        """Return the shape as an SVG element."""
        return _element("circle", cx=self.x, cy=self.y, r=self.radius, fill=self.fill)


@dataclass(frozen=True, slots=True)
class Path:
    """Lines in a 24 by 24 box, moved and scaled to where they are drawn."""

    data: str
    x: float
    y: float
    size: float
    """Width and height in pixels."""
    stroke: str
    """Colour of the lines."""

    def svg(self) -> str:
        """Return the shape as an SVG element."""
        return _element(
            "path",
            d=self.data,
            transform=f"translate({_number(self.x)} {_number(self.y)}) scale({_number(self.size / 24)})",
            fill="none",
            stroke=self.stroke,
            stroke_width=1.8,
            stroke_linecap="round",
            stroke_linejoin="round",
        )


@dataclass(frozen=True, slots=True)
class Arrow:
    """A straight arrow."""

    start: tuple[float, float]
    end: tuple[float, float]
    """`start`, `end`: Points ``(x, y)``; the head is at the end."""
    dashed: bool = False
    """Whether the line is dashed."""
    colour: str = INK
    """Of line and head."""

    def svg(self) -> str:
        """Return the shape as an SVG element."""
        (x1, y1), (x2, y2) = self.start, self.end
        return _element(
            "line",
            x1=x1,
            y1=y1,
            x2=x2,
            y2=y2,
            stroke=self.colour,
            stroke_width=2,
            stroke_dasharray="5 4" if self.dashed else None,
            marker_end="url(#head)",
        )


def document(shapes: Iterable[SvgShape], *, width: float, height: float, title: str, description: str) -> str:
    """Write shapes as a self-contained SVG document on a light ground of its own.

    shapes: What to draw, from back to front.
    title, description: What a screen reader says.
    Returns: The document; the same shapes give the same text.
    """
    ground = Rectangle(Area(0.5, 0.5, width - 1, height - 1), fill="#ffffff", stroke="#d5dbdb", radius=10)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_number(width)} {_number(height)}" '
        f'width="{_number(width)}" height="{_number(height)}" role="img" aria-labelledby="title description" '
        f'font-family="{FONT}">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="description">{escape(description)}</desc>',
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0L10 5L0 10z" fill="{INK}"/></marker></defs>',
        ground.svg(),
        *(shape.svg() for shape in shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _element(name: str, content: str = "", **attributes: str | float | None) -> str:
    """Write one element; attributes that are None are left out."""
    written = "".join(
        f' {key.replace("_", "-")}="{_number(value) if isinstance(value, int | float) else escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def _number(value: float) -> str:
    """Write a number with one decimal at most, without a trailing zero."""
    return f"{value:.1f}".removesuffix(".0")
