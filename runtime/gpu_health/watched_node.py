"""What GPU health reads of a node and of a worker: of Kubernetes, or of Amazon ECS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from inference_decisions.repairs.fault_rules import HardwareSignal


class WatchedNode(Protocol):
    """A node, as its cluster describes it."""

    @property
    def name(self) -> str:
        """Its name: the value of the label ``node`` of metrics."""

    @property
    def uid(self) -> str:
        """Its identifier. Another node of the same name has another one."""

    @property
    def pool(self) -> str:
        """Name of its pool. Empty if it is of none."""

    @property
    def rack(self) -> str:
        """The network node that it hangs on. Empty if it is not known."""

    @property
    def instance(self) -> str:
        """Identifier of its EC2 instance."""

    @property
    def instance_type(self) -> str:
        """Its instance type."""

    @property
    def ready(self) -> bool | None:
        """Whether its agent reports it ready. None if the agent stopped reporting."""

    @property
    def cordoned(self) -> bool:
        """Whether it is closed to new work."""

    @property
    def mark(self) -> str:
        """The mark of our cordon. Empty if it is not ours."""

    @property
    def created_at(self) -> float:
        """When it joined, in seconds since the epoch by our clock."""

    @property
    def boot(self) -> str:
        """Identifier of the boot. Empty if it is not known."""

    @property
    def ready_since(self) -> float:
        """When its readiness last changed."""

    @property
    def gpus_allocatable(self) -> int:
        """Accelerators that it offers."""

    def gpus_expected(self, accelerators: Mapping[str, int]) -> int:
        """Return the accelerators of its instance type. 0 if it has none, or is not known."""

    def signals(self) -> Iterable[HardwareSignal]:
        """Return what the cluster reports about it and its accelerators."""


@dataclass(frozen=True, slots=True)
class WatchedWorker:
    """A worker that is ready."""

    name: str
    """The value of the label ``pod`` of its metrics."""
    node: WatchedNode
    """The node that it runs on."""
    peers: str
    """What has to be equal for workers to be compared."""
    ready_since: float | None
    """Since when it is ready, in seconds since the epoch by our clock. None if the cluster does not say: then
    it counts from the first window that it reported."""
