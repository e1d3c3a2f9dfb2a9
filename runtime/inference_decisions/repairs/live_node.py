"""What is known about a node at the moment of a decision: read again before each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from inference_decisions.repairs.repair_case import RepairCase

#: How a node was bought. Blocks and reservations return a replacement only where they have a spare place.
Purchase = Literal["on_demand", "spot", "reservation", "capacity_block"]
#: What replaces a node: Karpenter deletes its NodeClaim, an Auto Scaling group terminates the instance.
NodeOwner = Literal["node_claim", "auto_scaling_group", "none"]


@dataclass(frozen=True, slots=True)
class LiveCondition:
    """A condition of the node, as the API server has it."""

    kind: str
    """Its type, such as ``AcceleratedHardwareReady``."""
    healthy: bool | None
    """Whether the status is the healthy one. None if it is unknown."""
    reason: str
    """Such as ``NvidiaXID79Error`` or ``DCGMError``."""
    since: float
    """Time of the last transition, in seconds since the epoch."""

    @property
    def code(self) -> str:
        """Type and status, as the table of faults writes them: ``KernelReady.False``."""
        return f"{self.kind}.{'Unknown' if self.healthy is None else self.healthy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DcgmReading:
    """The newest answer of the exporter of GPU metrics on the node."""

    at: float
    """Time of the sample, in seconds since the epoch."""
    gpus: int
    """GPUs that it lists."""
    host_engines: int = 1
    """DCGM host engines that run on the node. There must be exactly one."""
    xids: tuple[int, ...] = ()
    """XIDs whose value changed since the node was booted or the case was opened. The field holds the last XID
    for ever, so only a change is an event."""
    uncorrectable: int = 0
    """Uncorrectable ECC errors and row remappings that failed, since the boot."""
    corrected_per_second: float = 0.0
    """Rate of corrected ECC errors of the worst GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveNode:
    """A node as it is now."""

    name: str
    uid: str
    """`name`, `uid`: Name and identifier in Kubernetes. A new node of the same name has another
    identifier."""
    pool: str
    read_at: float
    """When this reading began, in seconds since the epoch."""
    booted_at: float
    """Time of the boot."""
    boot: str = ""
    """Identifier of the boot. Empty if it is not known, as on ECS."""
    ready: bool | None
    """Whether the kubelet reports it ready. None if it stopped reporting."""
    cordoned: bool
    """Whether it is closed to new pods."""
    owner: NodeOwner
    """What replaces it."""
    owner_name: str
    """The name of the NodeClaim or of the Auto Scaling group."""
    instance: str
    """Identifier of the EC2 instance."""
    purchase: Purchase
    """How it was bought."""
    spare: bool
    """Whether the capacity that it comes from can start another one now."""
    gpus_expected: int
    """GPUs of its instance type."""
    gpus_allocatable: int
    """GPUs that the kubelet offers."""
    cordoned_by_us: bool = False
    """Whether this platform's GPU health closed it."""
    conditions: tuple[LiveCondition, ...] = ()
    dcgm: DcgmReading | None = None
    """Newest reading of the exporter. None if it does not answer."""
    slower: float | None = None
    """Slowdown of its worst worker in the newest complete window, as a share. None if it is not known."""
    failing: float | None = None
    """Share of requests that fail on its worst worker, above that of the peers. None if it is not known."""
    rack: str = ""
    """The rack. Empty if it is not known."""
    peers: frozenset[str] = frozenset()
    """Groups of peers that its workers belong to, as `WorkerWindows` names them."""
    serving_pods: int = 0
    """Serving pods on the node."""


# What the Lambda functions and the simulated fleet do for the decisions. Each act may be repeated.


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

    def reserve(self, case: RepairCase, places: int) -> bool:
        """Take one of the pool's places for repairs in flight, atomically. False if all are taken.

        A case that holds a place already keeps it.

        places: Places of the pool.
        """

    def release(self, case: RepairCase) -> None:
        """Give the place back, if the case holds one."""

    def cordon(self, case: RepairCase) -> None:
        """Close the node to new pods, with a mark of whose cordon it is."""

    def uncordon(self, case: RepairCase) -> None:
        """Open the node again if the cordon is ours."""

    def drain(self, case: RepairCase) -> None:
        """Start or continue moving serving pods away through evictions, which cut no stream."""

    def reboot(self, case: RepairCase, live: LiveNode) -> None:
        """Boot the instance again, and note it: a node is rebooted only a few times a day."""

    def replace(self, case: RepairCase, live: LiveNode) -> None:
        """Ask the owner for another node: delete this NodeClaim, or terminate this instance in its group."""

    def verify(self, case: RepairCase) -> Verification:
        """Return whether a replacement serves."""

    def notify(self, case: RepairCase, text: str) -> None:
        """Tell people, once per case and reason."""
