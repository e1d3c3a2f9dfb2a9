"""Boxes and stacks: blocks that know their height at a width, and draw themselves into an area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from inference_blueprints.report.picture.drawing import (
    INK,
    MUTED,
    Area,
    Circle,
    Path,
    Rectangle,
    SvgShape,
    Text,
    text_width,
    wrap,
)

SMALL, NORMAL = 12, 13
LINE = 18
_PADDING = 14
_GLYPH, _SMALL_GLYPH = 34, 24

#: Colours of the kinds of services.
_COMPUTE = "#d45b07"
_NETWORK = "#8c4fff"
_STORAGE = "#4d7c0f"
_SECURITY = "#c7254e"
_MESSAGING = "#c2185b"
_SERVING = "#01796f"
_PEOPLE = "#44546a"
#: Pixels between blocks that an arrow joins; its number sits in the middle.
ARROW_GAP = 48


class Way(Enum):
    """What an arrow is part of: one of the three ways in, all of them together, or supply."""

    REAL_TIME = ("Real time", "#01796f")
    NEAR_REAL_TIME = ("Near real time", "#6d28d9")
    BATCH = ("Batch", "#b8124f")
    REQUESTS = ("Requests of all ways", "#16191f")
    SUPPLY = ("Supply and control", "#49525c")

    def __init__(self, label: str, colour: str) -> None:
        self.label = label
        self.colour = colour


class Glyph(Enum):
    """Line glyphs of our own, in a 24 by 24 box: colour of the ground, and path of the white lines."""

    APPLICATIONS = (_PEOPLE, "M4 5h16v11H4zM9 20h6M12 16v4M8 9l-2 2 2 2M16 9l2 2-2 2")
    INTERNET = (_PEOPLE, "M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0M3 12h18M12 3c-5 5-5 13 0 18M12 3c5 5 5 13 0 18")
    ENGINEER = (_PEOPLE, "M12 4a4 4 0 1 0 0 8a4 4 0 1 0 0-8M4 21c0-9 16-9 16 0")
    LOAD_BALANCER = (_NETWORK, "M3 12h6M9 12l8-7M9 12h8M9 12l8 7M17 3h4v4h-4zM17 10h4v4h-4zM17 17h4v4h-4z")
    PRIVATE_ZONE = (_NETWORK, "M12 3l8 3v6c0 5-4 8-8 9c-4-1-8-4-8-9V6zM9 9h6M9 12h6M9 15h6")
    NAT_GATEWAY = (_NETWORK, "M4 5h10v14H4zM9 12h12M17 8l4 4-4 4")
    ENDPOINT = (_NETWORK, "M3 12h10M13 6v12M13 9h4a3 3 0 0 1 0 6h-4M7 9l-3 3 3 3")
    CONTROL_PLANE = (_COMPUTE, "M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 8l3.5 2v4L12 16l-3.5-2v-4z")
    ROUTER = (_SERVING, "M3 12h5M8 12l4-6h8M8 12l4 6h8M17 3l3 3-3 3M17 15l3 3-3 3")
    CONTROLLER = (_COMPUTE, "M20 12a8 8 0 1 1-3-6.2M20 3v4h-4M12 8v4l3 2")
    BUCKET = (_STORAGE, "M4 6c0-3 16-3 16 0c0 3-16 3-16 0M4 6l2 13c1 3 11 3 12 0l2-13")
    KEY = (_SECURITY, "M4 12a4 4 0 1 0 8 0a4 4 0 1 0-8 0M12 12h9M18 12v4M21 12v3")
    QUEUE = (_MESSAGING, "M3 8h5v8H3zM10 8h5v8h-5zM17 8h4v8h-4z")
    STACKS = (_MESSAGING, "M12 3l9 4.5-9 4.5-9-4.5zM3 12l9 4.5 9-4.5M3 16.5L12 21l9-4.5")

    def __init__(self, colour: str, data: str) -> None:
        self.colour = colour
        self.data = data


@dataclass(slots=True)
class Canvas:
    """What has been drawn so far."""

    shapes: list[SvgShape] = field(default_factory=list)
    """From back to front."""
    anchors: dict[str, Area] = field(default_factory=dict)
    """Where the named blocks are, for arrows."""

    def text(
        self,
        x: float,
        y: float,
        text: str,
        width: float,
        *,
        size: float = NORMAL,
        bold: bool = False,
        colour: str = MUTED,
    ) -> float:
        """Draw a text in lines of a width, from its left end, and return the baseline below the last one."""
        for line in wrap(text, size, width, bold=bold):
            self.shapes.append(Text(x, y, line, size, bold, colour, whole=text))
            y += LINE
        return y

    def remember(self, anchor: str, area: Area) -> None:
        """Note where a block is, if it has a name."""
        if anchor:
            self.anchors[anchor] = area


class Block(Protocol):
    """A part of the picture."""

    def height(self, width: float) -> float:
        """Return the height in pixels that it needs at a width in pixels."""
        ...

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw it into an area."""
        ...


@dataclass(frozen=True, slots=True)
class VerticalStack:
    """Blocks below one another."""

    blocks: Sequence[Block]
    """From top to bottom."""
    gap: float = 12

    def height(self, width: float) -> float:
        """Return the sum of the blocks' heights."""
        return sum(block.height(width) for block in self.blocks) + self.gap * (len(self.blocks) - 1)

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw the blocks at the area's full width."""
        y = area.y
        for block in self.blocks:
            height = block.height(area.width)
            block.draw(Area(area.x, y, area.width, height), canvas)
            y += height + self.gap


@dataclass(frozen=True, slots=True)
class Space:
    """Nothing, for arrows that pass there."""

    def height(self, width: float) -> float:  # noqa: ARG002 - as of every block
        """Return no height of its own."""
        return 0.0

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw nothing."""


@dataclass(frozen=True, slots=True)
class HorizontalStack:
    """Blocks beside one another, all as high as the highest."""

    blocks: Sequence[Block]
    """From left to right."""
    weights: Sequence[float] = ()
    """Share of the width of each; alike when empty."""
    gap: float = 12

    def height(self, width: float) -> float:
        """Return the height of the highest block."""
        return max(block.height(each) for block, each in zip(self.blocks, self._widths(width), strict=True))

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw the blocks at the area's full height."""
        x = area.x
        for block, width in zip(self.blocks, self._widths(area.width), strict=True):
            block.draw(Area(x, area.y, width, area.height), canvas)
            x += width + self.gap

    def _widths(self, width: float) -> list[float]:
        weights = self.weights or [1.0] * len(self.blocks)
        room = width - self.gap * (len(self.blocks) - 1)
        return [room * weight / sum(weights) for weight in weights]


@dataclass(frozen=True, slots=True)
class Blank:
    """Nothing, where a row has fewer blocks than columns."""

    def height(self, width: float) -> float:  # noqa: ARG002 - a block's signature
        """Return no height."""
        return 0

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw nothing."""


def grid(blocks: Sequence[Block], *, columns: int, gap: float = 12) -> VerticalStack:
    """Arrange blocks in rows of equal columns.

    columns: Maximum columns; fewer if there are fewer blocks.
    gap: Pixels between rows and columns.
    """
    columns = min(columns, len(blocks))
    rows = []
    for start in range(0, len(blocks), columns):
        row = blocks[start : start + columns]
        rows.append(HorizontalStack([*row, *[Blank()] * (columns - len(row))], gap=gap))
    return VerticalStack(rows, gap)


def line_count(texts: Sequence[str], size: float, width: float, *, bold: bool = False) -> int:
    """Return how many lines texts take below one another, in pixels of `width`."""
    return sum(len(wrap(text, size, width, bold=bold)) for text in texts)


@dataclass(frozen=True, slots=True)
class Words:
    """Lines of text that wrap, with a number before them where there is one."""

    lines: Sequence[str]
    """From top to bottom."""
    size: float = SMALL
    number: int | None = None
    colour: str = INK
    """Of the number's circle."""

    def height(self, width: float) -> float:
        """Return the height of all lines."""
        return LINE * line_count(self.lines, self.size, width - self._indent)

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw the lines and the number."""
        if self.number is not None:
            draw_number(canvas, self.number, area.x + 10, area.y + 9, self.colour)
        y = area.y + 13
        for line in self.lines:
            y = canvas.text(area.x + self._indent, y, line, area.width - self._indent, size=self.size)

    @property
    def _indent(self) -> float:
        return 0 if self.number is None else 28


@dataclass(frozen=True, slots=True)
class Card:
    """A glyph with a title and lines."""

    title: str
    lines: Sequence[str]
    glyph: Glyph
    anchor: str = ""
    """Name by which arrows find it; empty when none does."""
    way: Way | None = None
    """Way in whose name stands above the card; None for none."""

    def height(self, width: float) -> float:
        """Return the height of the text or the glyph, whichever is higher, with the name of the way."""
        return max(self._glyph, LINE * self._line_count(width)) + _PADDING + (LINE if self.way else 0)

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw glyph and text in a rounded box, as high as the area."""
        if self.way:
            canvas.text(
                area.x + 2,
                area.y + 12,
                self.way.label,
                area.width,
                size=SMALL,
                bold=True,
                colour=self.way.colour,
            )
            area = Area(area.x, area.y + LINE, area.width, area.height - LINE)
        canvas.remember(self.anchor, area)
        canvas.shapes.append(Rectangle(area, fill="#ffffff", stroke="#c6cdd3", radius=6, stroke_width=1))
        text_height = LINE * self._line_count(area.width)
        middle = area.y + area.height / 2
        top = middle - max(text_height, self._glyph) / 2
        draw_glyph(canvas, self.glyph, area.x + _PADDING / 2, top, self._glyph)
        x, y, room = area.x + self._glyph + _PADDING, middle - text_height / 2 + 13, self._room(area.width)
        y = canvas.text(x, y, self.title, room, bold=True, colour=INK)
        for line in self.lines:
            y = canvas.text(x, y, line, room, size=SMALL)

    def _line_count(self, width: float) -> int:
        room = self._room(width)
        return line_count((self.title,), NORMAL, room, bold=True) + line_count(self.lines, SMALL, room)

    def _room(self, width: float) -> float:
        return width - self._glyph - 1.5 * _PADDING

    @property
    def _glyph(self) -> float:
        """The glyph's size: a title alone takes a small one."""
        return _GLYPH if self.lines else _SMALL_GLYPH


@dataclass(frozen=True, slots=True)
class Style:
    """How a frame looks: its line, ground and dash pattern."""

    stroke: str
    fill: str = "none"
    dashes: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A titled border around a block."""

    title: str
    """At the top left."""
    child: Block
    style: Style
    note: str = ""
    """At the right of the title, or below it where the width is too small for both."""
    anchor: str = ""
    """Name by which arrows find it; empty when none does."""

    def height(self, width: float) -> float:
        """Return the child's height with title and padding."""
        room = width - 2 * _PADDING
        return self.child.height(room) + self._heading_height(room) + _PADDING

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw border, title and child."""
        style = self.style
        canvas.remember(self.anchor, area)
        canvas.shapes.append(
            Rectangle(area, fill=style.fill, stroke=style.stroke, dashes=style.dashes, radius=4)
        )
        room = area.width - 2 * _PADDING
        left, y = area.x + _PADDING, area.y + 20
        y = canvas.text(left, y, self.title, room, bold=True, colour=style.stroke)
        if self._note_is_beside(room):
            right = area.right - _PADDING
            canvas.shapes.append(Text(right, y - LINE, self.note, SMALL, colour=MUTED, anchor="end"))
        elif self.note:
            canvas.text(left, y, self.note, room, size=SMALL)
        heading = self._heading_height(room)
        self.child.draw(Area(left, area.y + heading, room, area.height - heading - _PADDING), canvas)

    def _note_is_beside(self, room: float) -> bool:
        title = wrap(self.title, NORMAL, room, bold=True)[-1]
        used = text_width(title, NORMAL, bold=True) + LINE
        return bool(self.note) and used + text_width(self.note, SMALL) <= room

    def _heading_height(self, room: float) -> float:
        below = (self.note,) if self.note and not self._note_is_beside(room) else ()
        lines = line_count((self.title,), NORMAL, room, bold=True) + line_count(below, SMALL, room)
        return 12 + LINE * lines


def draw_glyph(canvas: Canvas, glyph: Glyph, x: float, y: float, size: float) -> None:
    """Draw a glyph on its coloured ground; position and size in pixels."""
    canvas.shapes.append(Rectangle(Area(x, y, size, size), fill=glyph.colour, radius=5))
    canvas.shapes.append(Path(glyph.data, x + size / 8, y + size / 8, size * 0.75, "#ffffff"))


def draw_number(canvas: Canvas, number: int, x: float, y: float, colour: str) -> None:
    """Draw a step's number in a circle around a point."""
    canvas.shapes.append(Circle(x, y, 10, colour))
    canvas.shapes.append(Text(x, y + 4.4, str(number), SMALL, bold=True, colour="#ffffff", anchor="middle"))
