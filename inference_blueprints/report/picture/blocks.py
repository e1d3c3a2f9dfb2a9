"""Boxes and stacks: blocks that know their height at a width, and draw themselves into an area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from inference_blueprints.report.picture.drawing import (
    MUTED,
    Area,
    Circle,
    Path,
    Rectangle,
    SvgShape,
    Text,
    cut,
    wrap,
)
from inference_blueprints.report.picture.glyphs import Glyph

SMALL, NORMAL = 12, 13
_LINE = 18
_PADDING = 14
_GLYPH, _SMALL_GLYPH = 34, 24

#: Pixels between blocks that an arrow joins; its number sits in the middle.
ARROW_GAP = 56


@dataclass(slots=True)
class Canvas:
    """What has been drawn so far.

    Parameters
    ----------
    shapes
        From back to front.
    anchors
        Where the named blocks are, for arrows.
    """

    shapes: list[SvgShape] = field(default_factory=list)
    anchors: dict[str, Area] = field(default_factory=dict)

    def text(
        self,
        x: float,
        y: float,
        line: str,
        width: float,
        *,
        size: float = NORMAL,
        bold: bool = False,
        colour: str = MUTED,
        whole: str = "",
    ) -> None:
        """Draw a line from its left end, cut to a width; the pointer shows the line, or the whole of it."""
        shown = cut(line, size, width, bold=bold)
        self.shapes.append(Text(x, y, shown, size, bold, colour, whole=whole or line))

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
    """Blocks below one another.

    Parameters
    ----------
    blocks
        From top to bottom.
    """

    blocks: Sequence[Block]
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
class HorizontalStack:
    """Blocks beside one another, all as high as the highest.

    Parameters
    ----------
    blocks
        From left to right.
    weights
        Share of the width of each; alike when empty.
    """

    blocks: Sequence[Block]
    weights: Sequence[float] = ()
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

    Parameters
    ----------
    columns
        Maximum columns; fewer if there are fewer blocks.
    gap
        Pixels between rows and columns.
    """
    columns = min(columns, len(blocks))
    rows = []
    for start in range(0, len(blocks), columns):
        row = blocks[start : start + columns]
        rows.append(HorizontalStack([*row, *[Blank()] * (columns - len(row))], gap=gap))
    return VerticalStack(rows, gap)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text that wraps.

    Parameters
    ----------
    number
        Shown in a circle before it, when there is one.
    """

    text: str
    number: int | None = None

    def height(self, width: float) -> float:
        """Return the height of its lines."""
        return _LINE * len(self._lines(width)) + 4

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw the lines and the number."""
        if self.number is not None:
            draw_number(canvas, self.number, area.x + 10, area.y + 9)
        for index, line in enumerate(self._lines(area.width)):
            x = area.x + self._indent
            canvas.shapes.append(Text(x, area.y + 14 + index * _LINE, line, NORMAL))

    @property
    def _indent(self) -> float:
        return 0 if self.number is None else 28

    def _lines(self, width: float) -> list[str]:
        return wrap(self.text, NORMAL, width - self._indent)


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of text, each cut to the width.

    Parameters
    ----------
    lines
        From top to bottom.
    """

    lines: Sequence[str]

    def height(self, width: float) -> float:  # noqa: ARG002 - a block's signature
        """Return the height of all lines."""
        return _LINE * len(self.lines)

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw the lines."""
        for index, line in enumerate(self.lines):
            canvas.text(area.x, area.y + 13 + index * _LINE, line, area.width, size=SMALL)


@dataclass(frozen=True, slots=True)
class Card:
    """A glyph with a title and lines.

    Parameters
    ----------
    anchor
        Name by which arrows find it; empty when none does.
    """

    title: str
    lines: Sequence[str]
    glyph: Glyph
    anchor: str = ""

    def height(self, width: float) -> float:
        """Return the height of the text or the glyph, whichever is higher."""
        return max(self._glyph, _LINE * (len(self._title(width)) + len(self.lines))) + _PADDING

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw glyph and text in a rounded box."""
        canvas.remember(self.anchor, area)
        canvas.shapes.append(Rectangle(area, fill="#ffffff", stroke="#c6cdd3", radius=6, stroke_width=1))
        draw_glyph(canvas, self.glyph, area.x + _PADDING / 2, area.y + _PADDING / 2, self._glyph)
        titles = self._title(area.width)
        text_height = _LINE * (len(titles) + len(self.lines))
        y = area.y + (area.height - text_height) / 2 + 13
        for index, line in enumerate([*titles, *self.lines]):
            is_title = index < len(titles)
            canvas.text(
                area.x + self._glyph + _PADDING,
                y + index * _LINE,
                line,
                self._room(area.width),
                size=NORMAL if is_title else SMALL,
                bold=is_title,
                colour="#16191f" if is_title else MUTED,
            )

    def _title(self, width: float) -> list[str]:
        return wrap(self.title, NORMAL * 1.09, self._room(width))

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
    """A titled border around a block.

    Parameters
    ----------
    title
        At the top left.
    note
        Beside the title, lighter.
    anchor
        Name by which arrows find it; empty when none does.
    """

    title: str
    child: Block
    style: Style
    note: str = ""
    anchor: str = ""

    def height(self, width: float) -> float:
        """Return the child's height with title and padding."""
        return self.child.height(width - 2 * _PADDING) + 30 + _PADDING

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw border, title and child."""
        style = self.style
        canvas.remember(self.anchor, area)
        canvas.shapes.append(
            Rectangle(area, fill=style.fill, stroke=style.stroke, dashes=style.dashes, radius=4)
        )
        room = area.width - 2 * _PADDING
        canvas.text(area.x + _PADDING, area.y + 20, self.title, room, bold=True, colour=style.stroke)
        title = canvas.shapes[-1]
        if self.note and isinstance(title, Text):
            used = title.area.width + 10
            canvas.text(area.x + _PADDING + used, area.y + 20, self.note, room - used, size=SMALL)
        self.child.draw(Area(area.x + _PADDING, area.y + 30, room, area.height - 30 - _PADDING), canvas)


def draw_glyph(canvas: Canvas, glyph: Glyph, x: float, y: float, size: float) -> None:
    """Draw a glyph on its coloured ground; position and size in pixels."""
    canvas.shapes.append(Rectangle(Area(x, y, size, size), fill=glyph.colour, radius=5))
    canvas.shapes.append(Path(glyph.data, x + size / 8, y + size / 8, size * 0.75, "#ffffff"))


def draw_number(canvas: Canvas, number: int, x: float, y: float) -> None:
    """Draw a step's number in a dark circle around a point."""
    canvas.shapes.append(Circle(x, y, 10, "#16191f"))
    canvas.shapes.append(Text(x, y + 4.4, str(number), SMALL, bold=True, colour="#ffffff", anchor="middle"))
