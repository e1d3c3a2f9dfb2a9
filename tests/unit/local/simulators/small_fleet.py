"""A small fleet with one release."""

from __future__ import annotations

import numpy

from inference_local.simulators.fleet.fleet_layout import FleetLayout


def one_release(workers: int, *, racks: int, workers_per_node: int = 1) -> FleetLayout:
    """Return a small fleet with one release, spread over racks.

    racks: Racks that its nodes are on, in turn.
    """
    node = numpy.arange(workers) // workers_per_node
    nodes = int(node.max()) + 1
    zeros = numpy.zeros(nodes, numpy.int64)
    return FleetLayout(
        cell=zeros,
        pool=zeros,
        rack=numpy.arange(nodes) % racks,
        node=node,
        release=numpy.zeros(workers, numpy.int64),
    )
