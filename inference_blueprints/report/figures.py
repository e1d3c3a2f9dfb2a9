"""Records that prices and several sections of the plan share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """One pool: its limits and its use by the plan.

    Parameters
    ----------
    instance_types
        Allowed EC2 instance types.
    purchase
        Purchase option, with the blueprint's key, such as ``onDemand`` or ``spot``.
    node_image
        Operating system of its nodes and its release, such as ``Bottlerocket v1.66.0``.
    root_volume_gib
        Space of the operating system itself on EBS, in GiB.
    is_managed_by_ecs
        Whether ECS Managed Instances run its nodes.
    pairs_efa_with_gpus
        Whether a worker with a part of a node gets the EFA interfaces beside its GPUs.
    reckoned_instance_type
        Type assumed for the used nodes: the cheapest that fits every worker. None if no node is used.
    accelerator
        Kind of device, such as ``l40s``; None if it has none.
    nodes_used, nodes_max
        Nodes that the plan's workers use or that are kept, and the maximum of the blueprint.
    accelerators_used, accelerators_max
        Devices that workers use, and devices of ``nodes_max`` nodes of the largest type.
    usd_per_hour_used, usd_per_hour_max
        Price of the used nodes, and the most that ``nodes_max`` nodes of the most expensive type can cost;
        None if unknown.
    usd_per_hour_used_at_most
        The most that the used nodes can cost; None if there is no known bound.
    nodes_idle, accelerators_idle
        Kept nodes without a worker, and devices of the used nodes that no worker holds.
    """

    name: str
    instance_types: tuple[str, ...]
    purchase: str
    node_image: str
    root_volume_gib: int
    is_managed_by_ecs: bool
    pairs_efa_with_gpus: bool
    reckoned_instance_type: str | None
    accelerator: str | None
    nodes_used: int
    nodes_max: int
    accelerators_used: int
    accelerators_max: int
    usd_per_hour_used: float | None
    usd_per_hour_max: float | None
    usd_per_hour_used_at_most: float | None
    nodes_idle: int
    accelerators_idle: int


@dataclass(frozen=True, slots=True)
class ProcessSummary:
    """One kind of process.

    Parameters
    ----------
    model, deployment, name
        Its model, deployment and name.
    replicas_least, replicas
        Smallest and largest number of replicas; equal unless it is elastic.
    accelerators, nodes
        Devices and nodes per replica.
    pool
        Pool on which it runs; None for the system nodes, ``Fargate`` for tasks of ECS without a pool.
    """

    model: str
    deployment: str
    name: str
    replicas_least: int
    replicas: int
    accelerators: int
    pool: str | None
    image: str
    nodes: int

    @property
    def replica_range(self) -> str:
        """Number of replicas in words."""
        least, most = self.replicas_least, self.replicas
        return str(most) if least == most else f"{least} to {most}"


@dataclass(frozen=True, slots=True)
class CostItem:
    """One part of a platform's cost.

    Parameters
    ----------
    name
        The part, such as ``NAT gateways``.
    assumption
        What is counted.
    usd_per_month
        US dollars per month; None if it depends on use or no price is known.
    is_bound
        Whether it is the most that the part can cost, because its real price is unknown.
    """

    name: str
    assumption: str
    usd_per_month: float | None
    is_bound: bool = False
