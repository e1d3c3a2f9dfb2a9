"""The number of nodes of a worker."""

from __future__ import annotations

from collections.abc import Sequence

from inference_catalog.hardware import InstanceType


def node_count(accelerators: int, types: Sequence[InstanceType]) -> int:
    """Return the number of nodes that a worker uses: one, or several equal nodes that it fills.

    Parameters
    ----------
    accelerators
        Devices of the worker.
    types
        Possible types of its nodes. The smallest decides.
    """
    smallest = min((each.accelerator_count for each in types), default=0)
    return max(1, -(-accelerators // smallest)) if smallest else 1
