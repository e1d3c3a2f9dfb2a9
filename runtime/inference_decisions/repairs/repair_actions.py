"""What the Lambda functions and the simulated fleet do for the decisions. Each act may be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from inference_decisions.repairs.live_node import LiveNode
from inference_decisions.repairs.repair_case import RepairCase


class RepairActionError(Exception):
    """An act did not succeed: it may have happened or not. The next decision reads live and tries again."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether the pool serves again with as many nodes as before."""

    serving: bool
    """Whether a node that was not there when the case was cordoned runs ready serving pods."""
    replacement: str = ""
    """Name of that node. Empty if there is none."""


class RepairActions(Protocol):
    """Acts on one cell. Each of them does nothing if it is done already, and raises `RepairActionError`."""

    def read_live(self, node: str) -> LiveNode | None:
        """Return the node as it is now. None if it is gone."""

    def reserve(self, case: RepairCase) -> bool:
        """Take one of the pool's places for replacements in flight, atomically. False if all are taken.

        A case that holds a place already keeps it.
        """

    def release(self, case: RepairCase) -> None:
        """Give the place back, if the case holds one."""

    def cordon(self, case: RepairCase) -> None:
        """Close the node to new pods, with a mark of whose cordon it is."""

    def uncordon(self, case: RepairCase) -> None:
        """Open the node again if the cordon is ours."""

    def drain(self, case: RepairCase) -> None:
        """Start or continue moving serving pods away through evictions, which cut no stream."""

    def replace(self, case: RepairCase, live: LiveNode) -> None:
        """Ask the owner for another node: delete this NodeClaim, or terminate this instance in its group."""

    def verify(self, case: RepairCase) -> Verification:
        """Return whether a replacement serves."""

    def notify(self, case: RepairCase, text: str) -> None:
        """Tell people, once per case and reason."""
