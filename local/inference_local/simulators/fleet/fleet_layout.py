"""Where the workers of a simulated fleet are: cells, racks, pools, nodes and releases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from inference_decisions.repairs.worker_windows import Codes

#: GPUs of a node: p5, p5en, p6-b200 and g6e.48xlarge (data of the catalogue).
NODE_GPUS = 8
#: Numbers of workers that releases have in one cell, as the shipped blueprints and their larger kin do.
_RELEASE_SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)
_POOL_SHARES = (0.4, 0.3, 0.2, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetLayout:
    """A fleet. Nodes, racks, pools and releases are numbered through the whole fleet."""

    cell: Codes
    pool: Codes
    rack: Codes
    """`cell`, `pool`, `rack`: Of each node."""
    node: Codes
    release: Codes
    """`node`, `release`: Of each worker."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.cell)

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.node)

    @property
    def releases(self) -> int:
        """Number of releases."""
        return int(self.release.max()) + 1

    def workers_of(self, node: int) -> Codes:
        """Return the workers on a node."""
        return numpy.flatnonzero(self.node == node)


def drawn_layout(
    gpus: int, random: numpy.random.Generator, *, cell_gpus: int = 10_000, rack_nodes: int = 16
) -> FleetLayout:
    """Return a fleet of cells with pools, whose releases are spread over racks.

    gpus: GPUs of the fleet.
    random: Source of chance.
    cell_gpus: Most GPUs of a cell.
    rack_nodes: Nodes below one network node.
    """
    nodes = gpus // NODE_GPUS
    cell = numpy.arange(nodes) * NODE_GPUS // cell_gpus
    within = numpy.arange(nodes) - numpy.searchsorted(cell, cell)
    size = numpy.bincount(cell)[cell]
    pool_in_cell = numpy.searchsorted(numpy.cumsum(_POOL_SHARES)[:-1], within / size, side="right")
    pool = cell * len(_POOL_SHARES) + pool_in_cell
    # A rack stands in one pool: capacity of one kind is bought and placed together.
    first = numpy.searchsorted(pool, pool)
    rack = pool * nodes + (numpy.arange(nodes) - first) // rack_nodes
    _, rack = numpy.unique(rack, return_inverse=True)
    node, release = _placed(pool, random)
    return FleetLayout(cell=cell, pool=pool, rack=rack.astype(numpy.int64), node=node, release=release)


def _placed(pool: Codes, random: numpy.random.Generator) -> tuple[Codes, Codes]:
    """Return node and release of each worker: a release's workers are on nodes of one pool, anywhere."""
    nodes, releases = list[Codes](), list[Codes]()
    taken = 0
    for name in numpy.unique(pool):
        members = random.permutation(numpy.flatnonzero(pool == name))
        per_node = random.choice([8, 4, 2, 1], size=len(members), p=[0.25, 0.25, 0.25, 0.25])
        for slots in (8, 4, 2, 1):
            places = random.permutation(numpy.repeat(members[per_node == slots], slots))
            while len(places):
                count = min(int(random.choice(_RELEASE_SIZES)), len(places))
                nodes.append(places[:count])
                releases.append(numpy.full(count, taken))
                places, taken = places[count:], taken + 1
    return numpy.concatenate(nodes), numpy.concatenate(releases)
