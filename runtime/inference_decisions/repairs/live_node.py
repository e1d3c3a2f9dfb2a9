"""What is known about a node at the moment of a decision: read again before each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: How a node was bought. Blocks and reservations return a replacement only where they have a spare place.
Purchase = Literal["on_demand", "spot", "reservation", "capacity_block"]
#: What replaces a node: Karpenter deletes its NodeClaim, an Auto Scaling group terminates the instance.
NodeOwner = Literal["node_claim", "auto_scaling_group", "none"]


@dataclass(frozen=True, slots=True)
class LiveCondition:
    """A condition of the node, as the API server has it.

    Parameters
    ----------
    kind
        Its type, such as ``AcceleratedHardwareReady``.
    healthy
        Whether the status is the healthy one. None if it is unknown.
    reason
        Such as ``NvidiaXID79Error`` or ``DCGMError``.
    since
        Time of the last transition, in seconds since the epoch.
    """

    kind: str
    healthy: bool | None
    reason: str
    since: float

    @property
    def code(self) -> str:
        """Type and status, as the table of faults writes them: ``KernelReady.False``."""
        return f"{self.kind}.{'Unknown' if self.healthy is None else self.healthy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DcgmReading:
    """The newest answer of the exporter of GPU metrics on the node.

    Parameters
    ----------
    at
        Time of the sample, in seconds since the epoch.
    gpus
        GPUs that it lists.
    host_engines
        DCGM host engines that run on the node. There must be exactly one.
    xids
        XIDs whose value changed since the node was booted or the case was opened. The field holds the last
        XID for ever, so only a change is an event.
    uncorrectable
        Uncorrectable ECC errors and row remappings that failed, since the boot.
    corrected_per_second
        Rate of corrected ECC errors of the worst GPU.
    """

    at: float
    gpus: int
    host_engines: int = 1
    xids: tuple[int, ...] = ()
    uncorrectable: int = 0
    corrected_per_second: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveNode:
    """A node as it is now.

    Parameters
    ----------
    name, uid
        Name and identifier in Kubernetes. A new node of the same name has another identifier.
    pool
        Name of the pool.
    read_at
        When this reading began, in seconds since the epoch.
    booted_at
        Time of the boot.
    ready
        Whether the kubelet reports it ready. None if it stopped reporting.
    cordoned
        Whether it is closed to new pods.
    cordoned_by_us
        Whether this platform's GPU health closed it.
    owner, owner_name
        What replaces it, and the name of the NodeClaim or of the Auto Scaling group.
    instance
        Identifier of the EC2 instance.
    purchase
        How it was bought.
    spare
        Whether the capacity that it comes from can start another one now.
    gpus_expected
        GPUs of its instance type.
    gpus_allocatable
        GPUs that the kubelet offers.
    conditions
        Its conditions.
    dcgm
        Newest reading of the exporter. None if it does not answer.
    slower
        Slowdown of its worst worker in the newest complete window, as a share. None if it is not known.
    failing
        Share of requests that fail on its worst worker, above that of the peers. None if it is not known.
    rack
        The rack. Empty if it is not known.
    peers
        Groups of peers that its workers belong to, as `WorkerWindows` names them.
    serving_pods
        Serving pods on the node.
    """

    name: str
    uid: str
    pool: str
    read_at: float
    booted_at: float
    ready: bool | None
    cordoned: bool
    owner: NodeOwner
    owner_name: str
    instance: str
    purchase: Purchase
    spare: bool
    gpus_expected: int
    gpus_allocatable: int
    cordoned_by_us: bool = False
    conditions: tuple[LiveCondition, ...] = ()
    dcgm: DcgmReading | None = None
    slower: float | None = None
    failing: float | None = None
    rack: str = ""
    peers: frozenset[str] = frozenset()
    serving_pods: int = 0
