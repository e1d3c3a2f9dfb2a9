"""Records that prices and several sections of the plan share."""

from __future__ import annotations

from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """One pool: its limits and its use by the plan."""

    name: str
    instance_types: tuple[str, ...]
    """Allowed EC2 instance types."""
    purchase: str
    """Purchase option, with the blueprint's key, such as ``onDemand`` or ``spot``."""
    node_image: str
    """Operating system of its nodes and its release, such as ``Bottlerocket v1.66.0``."""
    root_volume_gib: int
    """Space of the operating system itself on EBS, in GiB."""
    is_managed_by_ecs: bool
    """Whether ECS Managed Instances run its nodes."""
    pairs_efa_with_gpus: bool
    """Whether a worker with a part of a node gets the EFA interfaces beside its GPUs."""
    reckoned_instance_type: str | None
    """Type assumed for the used nodes: the cheapest that fits every worker. None if no node is used."""
    accelerator: str | None
    """Kind of device, such as ``l40s``; None if it has none."""
    nodes_used: int
    """Nodes that the plan's workers use or that are kept."""
    nodes_max: int
    """The maximum of the blueprint."""
    accelerators_used: int
    """Devices that workers use."""
    accelerators_max: int
    """Devices of ``nodes_max`` nodes of the largest type."""
    usd_per_hour_used: float | None
    usd_per_hour_max: float | None
    """`usd_per_hour_used`, `usd_per_hour_max`: Price of the used nodes, and the most that ``nodes_max`` nodes
    of the most expensive type can cost; None if unknown."""
    usd_per_hour_used_at_most: float | None
    """The most that the used nodes can cost; None if there is no known bound."""
    nodes_idle: int
    """Kept nodes without a worker."""
    accelerators_idle: int
    """Devices of the used nodes that no worker holds."""


@dataclass(frozen=True, slots=True)
class ProcessSummary:
    """One kind of process."""

    model: str
    deployment: str
    name: str
    replicas_least: int
    replicas: int
    """`replicas_least`, `replicas`: Smallest and largest number of replicas; equal unless it is elastic."""
    accelerators: int
    """`accelerators`, `nodes`: Devices and nodes per replica."""
    pool: str | None
    """Pool on which it runs; None for the system nodes, ``Fargate`` for tasks of ECS without a pool."""
    image: str
    nodes: int

    @property
    def replica_range(self) -> str:
        """Number of replicas in words."""
        minimum, maximum = self.replicas_least, self.replicas
        return f"{maximum:,}" if minimum == maximum else f"{minimum:,} to {maximum:,}"


@dataclass(frozen=True, slots=True)
class CostItem:
    """One part of a platform's cost."""

    name: str
    """The part, such as ``NAT gateways``."""
    assumption: str
    """What is counted."""
    usd_per_month: float | None
    """US dollars per month; None if it depends on use or no price is known."""
    is_bound: bool = False
    """Whether it is the most that the part can cost, because its real price is unknown."""
    usd_per_month_least: float | None = None
    """The least that the part can cost; None if that is ``usd_per_month``, or 0 for a bound."""

    @property
    def least(self) -> float:
        """US dollars per month that the part costs at least."""
        if self.usd_per_month_least is not None:
            return self.usd_per_month_least
        return 0.0 if self.is_bound else self.usd_per_month or 0.0
