"""Shapes of a picture, and how they are written as SVG and PNG."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Literal, Protocol

from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

FONT = (
    "Helvetica, Arial, 'Liberation Sans', Arimo, 'Noto Sans', 'DejaVu Sans', 'Open Sans', Roboto, Inter, "
    "Cantarell, sans-serif"
)
INK = "#16191f"
MUTED = "#49525c"


def _by_character(groups: Mapping[int, str]) -> Mapping[str, int]:
    return {character: width for width, characters in groups.items() for character in characters}


#: The widest advance of each character in thousandths of the font size, rounded up to 40. Source: the
#: tables `hmtx` of DejaVu Sans 2.37, Liberation Sans 1.07 (with the metrics of Arial and Helvetica), Noto
#: Sans 2.004, Open Sans 1.10, Roboto 2.138, Inter 3.19 and Cantarell 0.303. A reader's browser has one of
#: them, or one alike.
_REGULAR = _by_character(
    {
        280: "'ijl",
        320: " ,.",
        360: ":;I",
        400: "()[]ft",
        440: "!/\\r",
        480: '"-',
        520: "",
        560: "*?J_csz|",
        600: "L`kvxy",
        640: "$012356789Fabdeghnopqu{}",
        680: "4EKPSTY",
        720: "ABVXZ",
        760: "CHNRU",
        800: "&DGOQ",
        840: "#+<=>^w~",
        920: "M",
        1000: "%Wm",
        1040: "@",
    }
)
_BOLD = _by_character(
    {
        320: "'",
        360: " ijl",
        400: ",.:;I",
        440: "/\\f",
        480: "!()-[]t",
        520: "r",
        560: '"_|',
        600: "*Jcsz",
        640: "?L`",
        680: "aekvxy",
        720: "$0123456789EFSTbdghnopqu{}",
        760: "CPYZ",
        800: "ABKRVX",
        840: "#+<=>DGHNU^~",
        880: "&OQ",
        960: "w",
        1000: "M",
        1040: "%@",
        1080: "m",
        1120: "W",
    }
)
_UNKNOWN_WIDTH = 1000
_ASCENT, _DESCENT = 0.76, 0.24
#: Length and width of an arrow's head in pixels.
HEAD = 11


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return how wide a line of text is at most, in the widest of the common fonts.

    size: Font size in pixels.
    bold: Whether it is bold.
    Returns: Pixels.
    """
    widths = _BOLD if bold else _REGULAR
    return sum(widths.get(character, _UNKNOWN_WIDTH) for character in text) * size / 1000


def wrap(text: str, size: float, width: float, *, bold: bool = False) -> list[str]:
    """Break a text into lines between words, and a word that is longer than a line after its separators.

    Nothing is cut. Parameters as in `text_width`.
    """
    lines = [""]
    for word in text.split():
        for index, piece in enumerate(_pieces(word, size, width, bold=bold)):
            space = " " if lines[-1] and index == 0 else ""
            longer = f"{lines[-1]}{space}{piece}"
            if not lines[-1] or text_width(longer, size, bold=bold) <= width:
                lines[-1] = longer
            else:
                lines.append(piece)
    return lines


def _pieces(word: str, size: float, width: float, *, bold: bool) -> list[str]:
    """Return the parts of a word between which a line may end."""
    if text_width(word, size, bold=bold) <= width:
        return [word]
    parts = re.findall(r"[^/._:-]*[/._:-]|[^/._:-]+", word)
    return [
        piece for part in parts for piece in ([part] if text_width(part, size, bold=bold) <= width else part)
    ]


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

    def contains(self, other: Area) -> bool:
        """Return whether another area lies wholly inside this one."""
        across = self.x <= other.x and other.right <= self.right
        return across and self.y <= other.y and other.bottom <= self.bottom

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
    """The text that was broken into lines, shown when the pointer rests on one of them."""

    @property
    def area(self) -> Area:
        """The space that the line takes in the widest of the common fonts."""
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
    """A straight arrow along a row or a column."""

    start: tuple[float, float]
    end: tuple[float, float]
    """`start`, `end`: Points ``(x, y)``; the head is at the end."""
    dashed: bool = False
    """Whether the line is dashed."""
    colour: str = INK
    """Of line and head."""

    def svg(self) -> str:
        """Return the shape as an SVG element. Its head has the line's colour, as no marker can."""
        (x1, y1), (x2, y2) = self.start, self.end
        dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
        x, y = x2 - HEAD * dx, y2 - HEAD * dy
        line = _element(
            "line",
            x1=x1,
            y1=y1,
            x2=x,
            y2=y,
            stroke=self.colour,
            stroke_width=2,
            stroke_dasharray="5 4" if self.dashed else None,
        )
        side = HEAD / 2
        corners = ((x2, y2), (x - side * dy, y + side * dx), (x + side * dy, y - side * dx))
        points = " ".join(f"{_number(px)},{_number(py)}" for px, py in corners)
        return f"{line}{_element('polygon', points=points, fill=self.colour)}"


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
        ground.svg(),
        *(shape.svg() for shape in shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def png(svg: str) -> bytes:
    """Draw a document as PNG, with two pixels for each of the document's.

    Raises UserError if the library or every font of the document is missing.
    """
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415 - nothing else needs it, and it may be missing
    except ImportError as error:
        raise UserError(
            "a picture as PNG needs the Python package resvg-py, which is not installed; install it, or name "
            "a file that ends in .svg"
        ) from error
    # resvg leaves a text out, without an error, if it finds none of its fonts (linebender/resvg#606).
    empty, letter = (
        document([*text], width=20, height=20, title="", description="") for text in ((), (Text(2, 14, "a"),))
    )
    if svg_to_bytes(svg_string=empty) == svg_to_bytes(svg_string=letter):
        raise UserError(
            f"a picture as PNG needs one of these fonts on this machine: {FONT.replace(', sans-serif', '')}; "
            "install one, such as fonts-dejavu-core on Debian and Ubuntu, or name a file that ends in .svg"
        )
    return svg_to_bytes(svg_string=svg, zoom=2)


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
