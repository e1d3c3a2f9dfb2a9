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
    limits
        How many nodes are replaced at most, as a sentence. Empty where nothing of this library replaces them.
    """

    pool: str
    owner: str
    broken: str
    slow: str
    limits: str
