"""The part of the picture that shows a pool: its nodes, their devices and who holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inference_blueprints.report.picture.blocks import NORMAL, SMALL, Canvas
from inference_blueprints.report.picture.drawing import INK, Area, Rectangle, SvgShape, Text, wrap_name
from inference_blueprints.report.sizing.node_packing import PackedNode, Worker

#: Colours of the models, told apart without red against green (Okabe and Ito's palette, darkened for text).
_MODEL_COLOURS = ("#0072b2", "#a34a00", "#007a5e", "#8f3a84", "#5b5b00", "#2b5d8a", "#7a2e2e", "#3d3d7a")

_DEVICE, _DEVICE_GAP = 14, 4
_DOT = 6.0
_DEVICES_IN_A_ROW = 8
_LINE = 18
_PADDING = 10
_CHIP_GAP = 8


@dataclass(frozen=True, slots=True)
class Tag:
    """The short name and colour of a model in the picture.

    Parameters
    ----------
    colour
        Its ground; several models share one where there are more than colours.
    """

    label: str
    colour: str

    @property
    def width(self) -> float:
        """Pixels that the tag takes."""
        return 14 + 8 * len(self.label)

    def draw(self, canvas: Canvas, x: float, baseline: float) -> None:
        """Draw the tag left of a text on the same baseline."""
        canvas.shapes.append(Rectangle(Area(x, baseline - 13, self.width, 17), fill=self.colour, radius=4))
        middle = x + self.width / 2
        canvas.shapes.append(
            Text(middle, baseline, self.label, SMALL, bold=True, colour="#ffffff", anchor="middle")
        )


def tags(model_names: Sequence[str]) -> dict[str, Tag]:
    """Return each model's tag.

    Parameters
    ----------
    model_names
        In the blueprint's order.
    """
    return {
        name: Tag(f"M{index + 1}", _MODEL_COLOURS[index % len(_MODEL_COLOURS)])
        for index, name in enumerate(model_names)
    }


def device(x: float, y: float, size: float, colour: str | None, *, decodes: bool = False) -> list[SvgShape]:
    """Return the sign of an accelerator.

    Parameters
    ----------
    x, y
        Its upper left corner.
    size
        Its width and height in pixels.
    colour
        Of the model that holds it; None where no worker does.
    decodes
        Whether its worker only writes answers, which a dot says.
    """
    square = Rectangle(
        Area(x, y, size, size), fill=colour or "#ffffff", stroke=colour or "#8d969e", radius=2, stroke_width=1
    )
    edge = (size - _DOT) / 2
    dot = Rectangle(Area(x + edge, y + edge, _DOT, _DOT), fill="#ffffff", radius=_DOT / 2)
    return [square, dot] if decodes else [square]


@dataclass(frozen=True, slots=True)
class NodeBox:
    """Nodes that hold the same workers, drawn once.

    Parameters
    ----------
    count
        How many there are.
    colours
        Model name to the colour of the devices that it holds.
    """

    node: PackedNode
    count: int
    colours: Mapping[str, Tag]

    def height(self, width: float) -> float:
        """Return the height of the title and the rows of devices."""
        rows = -(-max(1, self.node.instance_type.accelerator_count) // self._columns(width))
        return 2 * _PADDING + _LINE + rows * (_DEVICE + _DEVICE_GAP)

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw the node with one square a device: filled where a worker holds it."""
        canvas.shapes.append(Rectangle(area, fill="#fff7ef", stroke="#d45b07", radius=4, stroke_width=1))
        name = self.node.instance_type.name
        title = f"{name}, {self.count} of them" if self.count > 1 else name
        room = area.width - 2 * _PADDING
        canvas.text(area.x + _PADDING, area.y + _PADDING + 11, title, room, size=SMALL, bold=True)
        columns = self._columns(area.width)
        step = _DEVICE + _DEVICE_GAP
        for index, holder in enumerate(self._holders()):
            x = area.x + _PADDING + index % columns * step
            y = area.y + _PADDING + _LINE + index // columns * step
            colour = self.colours[holder.model].colour if holder else None
            canvas.shapes += device(
                x, y, _DEVICE, colour, decodes=bool(holder and holder.process.role == "decode")
            )

    def _holders(self) -> list[Worker | None]:
        """Return the worker that holds each device; None for a free one."""
        held = [worker for worker in self.node.workers for _ in range(worker.accelerator_count)]
        return [*held, *[None] * (self.node.instance_type.accelerator_count - len(held))]

    @staticmethod
    def _columns(width: float) -> int:
        fitting = int((width - 2 * _PADDING + _DEVICE_GAP) // (_DEVICE + _DEVICE_GAP))
        return max(1, min(_DEVICES_IN_A_ROW, fitting))


@dataclass(frozen=True, slots=True)
class TaggedLines:
    """A title and lines behind a model's tag."""

    tag: Tag
    title: str
    lines: Sequence[str]

    def height(self, width: float) -> float:
        """Return the height of the lines."""
        return _LINE * (len(self._title(width)) + len(self.lines)) + 4

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw tag and text."""
        baseline = area.y + 15
        self.tag.draw(canvas, area.x, baseline)
        x = area.x + self.tag.width + _CHIP_GAP
        titles = self._title(area.width)
        for index, line in enumerate(titles):
            y = baseline + index * _LINE
            canvas.text(x, y, line, area.right - x, size=NORMAL, bold=True, colour=INK, whole=self.title)
        for index, line in enumerate(self.lines, start=len(titles)):
            canvas.text(x, baseline + index * _LINE, line, area.right - x, size=SMALL)

    def _title(self, width: float) -> list[str]:
        return wrap_name(self.title, NORMAL, width - self.tag.width - _CHIP_GAP)


def node_boxes(nodes: Sequence[PackedNode], colours: Mapping[str, Tag], *, at_most: int) -> list[NodeBox]:
    """Return the boxes of a pool's nodes: one each where there is room, else one for those that are alike.

    Parameters
    ----------
    colours
        Model name to tag.
    at_most
        Boxes up to which every node gets its own.
    """
    if len(nodes) <= at_most:
        return [NodeBox(node, 1, colours) for node in nodes]
    alike: dict[tuple[str, ...], list[PackedNode]] = {}
    for node in nodes:
        alike.setdefault(
            tuple(f"{each.model}/{each.process.role}/{each.accelerator_count}" for each in node.workers), []
        ).append(node)
    return [NodeBox(same[0], len(same), colours) for same in alike.values()]
