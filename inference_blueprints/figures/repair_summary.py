"""Who replaces broken nodes of a pool, and what happens to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RepairSummary:
    """Repairs of one pool.

    Parameters
    ----------
    pool
        The pool.
    owner
        Who replaces its broken nodes: a value of `repairedBy`.
    broken, slow
        What happens to a broken node, and to one whose GPUs are slow.
    """

    pool: str
    owner: str
    broken: str
    slow: str
