"""The pools in the picture: their limits, their nodes and the workers on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from inference_blueprints.report.picture.blocks import (
    LINE,
    NORMAL,
    SMALL,
    Block,
    Canvas,
    Frame,
    Style,
    VerticalStack,
    Words,
    grid,
    line_count,
)
from inference_blueprints.report.picture.drawing import INK, Area, Rectangle, SvgShape, Text, text_width
from inference_blueprints.report.picture.scene import Scene, counted
from inference_blueprints.report.sizing.node_packing import (
    PackedNode,
    Worker,
    cheapest_placement,
    roles_of_pool,
    workers_of_pool,
)
from inference_blueprints.spec.types import Pool
from inference_catalog import InstanceType
from inference_contracts.records import dataclass

#: Colours of the models, told apart without red against green (Okabe and Ito's palette, darkened for text).
_MODEL_COLOURS = ("#0072b2", "#a34a00", "#007a5e", "#8f3a84", "#5b5b00", "#2b5d8a", "#7a2e2e", "#3d3d7a")
_DEVICE, _DEVICE_GAP = 14, 4
_DOT = 6.0
_DEVICES_IN_A_ROW = 8
_PADDING = 10
_CHIP_GAP = 8
_POOL = Style("#a34a00", fill="#ffffff")
_POOLS = Style("#49525c", fill="#fafbfc", dashes="5 4")
_COLUMNS = 3
#: More pools than these are drawn without their nodes, in more columns.
_MANY = 12
_COLUMNS_OF_MANY = 4
#: Nodes beside one another in a pool, by the number of pools beside one another.
_NODE_COLUMNS = {1: 4, 2: 2, 3: 1}
_NODES_DRAWN_APART = {1: 4, 2: 4, 3: 2}
_DEVICE_NOUNS = {"nvidia.com/gpu": "GPU", "aws.amazon.com/neuron": "Neuron device"}
_PURCHASES = {
    "onDemand": "On demand",
    "spot": "Spot",
    "reservation": "Reserved",
    "capacityBlock": "Capacity Block",
}


@dataclass(frozen=True, slots=True)
class Tag:
    """The short name and colour of a model in the picture."""

    label: str
    colour: str
    """Its ground; several models share one where there are more than colours."""

    @property
    def width(self) -> float:
        """Pixels that the tag takes."""
        return 12 + text_width(self.label, SMALL, bold=True)

    def draw(self, canvas: Canvas, x: float, baseline: float) -> None:
        """Draw the tag left of a text on the same baseline."""
        canvas.shapes.append(Rectangle(Area(x, baseline - 13, self.width, 17), fill=self.colour, radius=4))
        middle = x + self.width / 2
        canvas.shapes.append(
            Text(middle, baseline, self.label, SMALL, bold=True, colour="#ffffff", anchor="middle")
        )


def tags(model_names: Sequence[str]) -> dict[str, Tag]:
    """Return each model's tag.

    model_names: In the blueprint's order.
    """
    return {
        name: Tag(f"M{index + 1}", _MODEL_COLOURS[index % len(_MODEL_COLOURS)])
        for index, name in enumerate(model_names)
    }


def device(x: float, y: float, size: float, colour: str | None, *, decodes: bool = False) -> list[SvgShape]:
    """Return the sign of an accelerator.

    x, y: Its upper left corner.
    size: Its width and height in pixels.
    colour: Of the model that holds it; None where no worker does.
    decodes: Whether its worker only writes answers, which a dot says.
    """
    square = Rectangle(
        Area(x, y, size, size), fill=colour or "#ffffff", stroke=colour or "#8d969e", radius=2, stroke_width=1
    )
    edge = (size - _DOT) / 2
    dot = Rectangle(Area(x + edge, y + edge, _DOT, _DOT), fill="#ffffff", radius=_DOT / 2)
    return [square, dot] if decodes else [square]


@dataclass(frozen=True, slots=True)
class NodeBox:
    """Nodes that hold the same workers, drawn once."""

    node: PackedNode
    count: int
    """How many there are."""
    colours: Mapping[str, Tag]
    """Model name to the colour of the devices that it holds."""

    def height(self, width: float) -> float:
        """Return the height of the title and the rows of devices."""
        rows = -(-max(1, self.node.instance_type.accelerator_count) // self._columns(width))
        titles = line_count((self._title,), SMALL, width - 2 * _PADDING, bold=True)
        return 2 * _PADDING + LINE * titles + rows * (_DEVICE + _DEVICE_GAP)

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw the node with one square a device: filled where a worker holds it."""
        canvas.shapes.append(Rectangle(area, fill="#fff7ef", stroke="#d45b07", radius=4, stroke_width=1))
        x, room = area.x + _PADDING, area.width - 2 * _PADDING
        top = canvas.text(x, area.y + _PADDING + 11, self._title, room, size=SMALL, bold=True) - 11
        columns = self._columns(area.width)
        step = _DEVICE + _DEVICE_GAP
        for index, holder in enumerate(self._holders()):
            left = x + index % columns * step
            y = top + index // columns * step
            colour = self.colours[holder.model].colour if holder else None
            canvas.shapes += device(
                left, y, _DEVICE, colour, decodes=bool(holder and holder.process.role == "decode")
            )

    @property
    def _title(self) -> str:
        name = self.node.instance_type.name
        return f"{name}, {self.count} of them" if self.count > 1 else name

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
        room = width - self._indent
        lines = line_count((self.title,), NORMAL, room, bold=True) + line_count(self.lines, SMALL, room)
        return LINE * lines + 4

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw tag and text."""
        y = area.y + 15
        self.tag.draw(canvas, area.x, y)
        x, room = area.x + self._indent, area.width - self._indent
        y = canvas.text(x, y, self.title, room, bold=True, colour=INK)
        for line in self.lines:
            y = canvas.text(x, y, line, room, size=SMALL)

    @property
    def _indent(self) -> float:
        return self.tag.width + _CHIP_GAP


def node_boxes(nodes: Sequence[PackedNode], colours: Mapping[str, Tag], *, at_most: int) -> list[NodeBox]:
    """Return the boxes of a pool's nodes: one each where there is room, else one for those that are alike.

    colours: Model name to tag.
    at_most: Boxes up to which every node gets its own.
    """
    if len(nodes) <= at_most:
        return [NodeBox(node, 1, colours) for node in nodes]
    alike: dict[tuple[str, ...], list[PackedNode]] = {}
    for node in nodes:
        alike.setdefault(
            tuple(f"{each.model}/{each.process.role}/{each.accelerator_count}" for each in node.workers), []
        ).append(node)
    return [NodeBox(same[0], len(same), colours) for same in alike.values()]


def pools_frame(scene: Scene, tags: Mapping[str, Tag]) -> Block:
    """Return all pools in a grid.

    scene: The blueprint and its plan.
    tags: Model name to tag.
    """
    pools = scene.blueprint.spec.pools
    if len(pools) > _MANY:
        # Only what tells pools apart, so that the picture keeps a shape that fits a page.
        compact = [_compact_pool(pool, scene) for pool in pools]
        child = grid(compact, columns=_COLUMNS_OF_MANY, gap=8)
        return Frame("Pools", child, _POOLS, note=scene.pools_note, anchor="pools")
    columns = min(_COLUMNS, len(pools))
    blocks = [_pool(pool, scene, tags, columns) for pool in pools]
    child = grid(blocks, columns=columns)
    return Frame("Pools", child, _POOLS, note=scene.pools_note, anchor="pools")


def _pool(pool: Pool, scene: Scene, tags: Mapping[str, Tag], columns: int) -> Block:
    """Return one pool with its nodes and a line for each deployment on it."""
    workers = workers_of_pool(scene.plan, pool.name)
    nodes = cheapest_placement(workers, pool.types)
    usage = f"{_purchase(pool)}, {_usage(pool, scene, len(nodes))}"
    facts = Words((_names(pool), _devices(pool.types[0]), usage))
    boxes = node_boxes(nodes, tags, at_most=_NODES_DRAWN_APART[columns])
    blocks: list[Block] = [facts]
    if boxes:
        blocks.append(grid(boxes, columns=_NODE_COLUMNS[columns], gap=8))
        blocks.append(VerticalStack(_worker_lines(pool, scene, tags), gap=2))
    return Frame(pool.name, VerticalStack(blocks, gap=8), _POOL)


def _compact_pool(pool: Pool, scene: Scene) -> Block:
    """Return one pool without its nodes, for a blueprint with very many."""
    nodes = cheapest_placement(workers_of_pool(scene.plan, pool.name), pool.types)
    lines = (_names(pool), _purchase(pool), _usage(pool, scene, len(nodes)))
    return Frame(pool.name, Words(lines), _POOL)


def _names(pool: Pool) -> str:
    return ", ".join(each.name for each in pool.types)


def _purchase(pool: Pool) -> str:
    """Return how nodes are bought, with the fallback of Spot."""
    spot = pool.purchase.spot
    return "Spot or on demand" if spot and spot.on_demand_fallback else _PURCHASES[pool.purchase.chosen]


def _usage(pool: Pool, scene: Scene, nodes: int) -> str:
    shared = "" if pool.shared is None else ", shared by priority"
    return f"{nodes} of {pool.nodes.max} {scene.machines.lower()}{shared}"


def _worker_lines(pool: Pool, scene: Scene, tags: Mapping[str, Tag]) -> list[Block]:
    """Return a block a deployment: a line for each role says how many there are and what each holds.

    On a shared pool, another line has the priority of the model.
    """
    roles = roles_of_pool(scene.plan, pool.name)
    priorities = {model.name: model.priority for model in scene.blueprint.spec.models if pool.shared}
    return [
        TaggedLines(
            tags[model],
            f"{model}/{deployment}",
            (
                *map(_worker_words, own),
                *([f"priority {priorities[model]}"] if priorities.get(model) is not None else []),
            ),
        )
        for (model, deployment), own in groupby(roles, key=lambda worker: (worker.model, worker.deployment))
    ]


def _devices(instance_type: InstanceType) -> str:
    """Return such as ``L40S, 44.7 GiB each``."""
    accelerator = instance_type.accelerator
    if accelerator is None:
        return "no accelerators"
    return f"{accelerator.name.upper()}, {accelerator.memory_mib / 1024:.1f} GiB each"


def _worker_words(worker: Worker) -> str:
    """Return such as ``2 workers of 1 GPU``, or ``12 prefill workers of 1 GPU``."""
    role = worker.process.role
    workers = counted(worker.process.maximum, "worker" if role == "worker" else f"{role} worker")
    if worker.process.replicas < worker.process.maximum:
        workers = f"{worker.process.replicas} to {workers}"
    accelerators = worker.process.resources.accelerators
    if accelerators is None or accelerators.resource_name is None:
        return workers
    return f"{workers} of {counted(accelerators.count, _DEVICE_NOUNS[accelerators.resource_name])}"
