"""The pools in the picture: their limits, their nodes and the workers on them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from inference_blueprints.report.picture.blocks import Block, Frame, Lines, Style, VerticalStack, grid
from inference_blueprints.report.picture.node_blocks import Tag, TaggedLines, node_boxes
from inference_blueprints.report.picture.scene import Scene, counted
from inference_blueprints.report.sizing.node_packing import Worker, cheapest_placement, workers_of_pool
from inference_blueprints.spec.types import Pool
from inference_catalog import InstanceType

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


def pools_frame(scene: Scene, tags: Mapping[str, Tag]) -> Block:
    """Return all pools in a grid.

    Parameters
    ----------
    scene
        The blueprint and its plan.
    tags
        Model name to tag.
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
    usage = f"{_purchase(pool)}, {_usage(pool, len(nodes))}"
    facts = Lines((_names(pool), _devices(pool.types[0]), usage))
    boxes = node_boxes(nodes, tags, at_most=_NODES_DRAWN_APART[columns])
    blocks: list[Block] = [facts]
    if boxes:
        blocks.append(grid(boxes, columns=_NODE_COLUMNS[columns], gap=8))
        blocks.append(VerticalStack(_worker_lines(workers, tags), gap=2))
    return Frame(pool.name, VerticalStack(blocks, gap=8), _POOL)


def _compact_pool(pool: Pool, scene: Scene) -> Block:
    """Return one pool without its nodes, for a blueprint with very many."""
    nodes = cheapest_placement(workers_of_pool(scene.plan, pool.name), pool.types)
    lines = (_names(pool), _purchase(pool), _usage(pool, len(nodes)))
    return Frame(pool.name, Lines(lines), _POOL)


def _names(pool: Pool) -> str:
    return ", ".join(each.name for each in pool.types)


def _purchase(pool: Pool) -> str:
    """Return how nodes are bought, with the fallback of Spot."""
    spot = pool.purchase.spot
    return "Spot or on demand" if spot and spot.on_demand_fallback else _PURCHASES[pool.purchase.chosen]


def _usage(pool: Pool, nodes: int) -> str:
    return f"{nodes} of {pool.nodes.max} nodes"


def _worker_lines(workers: list[Worker], tags: Mapping[str, Tag]) -> list[Block]:
    """Return a block a deployment: a line for each role says how many there are and what each holds."""
    kinds = {(worker.model, worker.deployment, worker.process.name): worker for worker in workers}
    return [
        TaggedLines(tags[model], f"{model}/{deployment}", tuple(map(_worker_words, roles)))
        for (model, deployment), roles in groupby(
            kinds.values(), key=lambda worker: (worker.model, worker.deployment)
        )
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
    workers = counted(worker.process.most, "worker" if role == "worker" else f"{role} worker")
    if worker.process.scaling:
        workers = f"{worker.process.scaling.least} to {workers}"
    accelerators = worker.process.resources.accelerators
    if accelerators is None or accelerators.resource_name is None:
        return workers
    return f"{workers} of {counted(accelerators.count, _DEVICE_NOUNS[accelerators.resource_name])}"
