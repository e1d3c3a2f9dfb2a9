"""How many nodes a worker takes."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints.catalog.hardware import InstanceType


def node_count(accelerators: int, instance_types: Sequence[InstanceType]) -> int:
    """Return the nodes over which a worker's accelerators lie: one, or whole ones that are alike.

    Parameters
    ----------
    accelerators
        Devices of the worker.
    instance_types
        What its nodes may be; the smallest decides.
    """
    smallest = min((each.accelerator_count for each in instance_types), default=0)
    return max(1, -(-accelerators // smallest)) if smallest else 1
