"""Pools: accelerated nodes, how they are paid for, and how many there may be."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from inference_blueprints.spec.types.section import (
    AvailabilityZone,
    CapacityReservationId,
    Choice,
    InstanceTypeName,
    LabelValue,
    Name,
    QualifiedName,
    Section,
    SnapshotId,
    default,
)


class OnDemand(Section):
    """Instances at the listed price."""


class Spot(Section):
    """Spare instances that AWS may take back with two minutes' notice."""

    on_demand_fallback: bool = False
    """Whether on-demand instances stand in where there is no spot capacity."""


class ReservedCapacity(Choice):
    """Which capacity that is paid for already; the pool never starts an instance outside of it."""

    id: CapacityReservationId | None = None
    """Its id; it is of one instance type and one zone."""
    tags: dict[str, str] | None = Field(default=None, min_length=1, max_length=20)
    """Tags that it carries, all of them; several may, and later ones count without a deploy."""


class Purchase(Choice):
    """How the pool's instances are paid for."""

    on_demand: OnDemand | None = None
    """At the listed price."""
    spot: Spot | None = None
    """Spare capacity."""
    reservation: ReservedCapacity | None = None
    """On-Demand Capacity Reservations."""
    capacity_block: ReservedCapacity | None = None
    """Capacity Blocks for ML, which end on a date: nodes drain 40 minutes before it."""


class NodeCount(Section):
    """How many nodes a pool may hold."""

    min: int = Field(default=0, ge=0, le=5000)
    """Nodes that are kept whether pods need them or not; 0 lets the pool go to nothing."""
    max: int = Field(ge=1, le=5000)
    """Nodes at the most; Karpenter is limited to this many nodes' accelerators."""


class Taint(Section):
    """What keeps pods of others off a pool's nodes; the models that name the pool tolerate it."""

    key: QualifiedName
    """Key."""
    value: LabelValue = ""
    """Value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """What becomes of pods that do not tolerate it."""


class Disk(Section):
    """The EBS volume: for images where an instance type has no NVMe, else for the operating system alone."""

    size_gib: int = Field(default=200, ge=50, le=16384)
    """Size in GiB."""


class SociParallelPull(Section):
    """Nodes pull their images, several parts of a layer at once."""


class EbsSnapshot(Section):
    """Nodes start with their images on the EBS volume, and leave the NVMe of their instance types unused."""

    id: SnapshotId | None = None
    """The snapshot, which `blueprints image-cache bake` makes; without one nodes pull their images."""


class ImageAcceleration(Choice):
    """How images come to a new node."""

    soci_parallel_pull: SociParallelPull | None = None
    """By its network."""
    ebs_snapshot: EbsSnapshot | None = None
    """From a snapshot of another node's volume."""


class Pool(Section):
    """Nodes that are interchangeable for the models that name the pool."""

    name: Name
    """Name by which deployments refer to the pool."""
    instance_types: list[InstanceTypeName] = Field(min_length=1, max_length=50)
    """EC2 instance types, of one architecture and one accelerator."""
    purchase: Purchase = default({"onDemand": {}})
    """How the instances are paid for; without it on demand."""
    nodes: NodeCount
    """How many nodes the pool may hold."""
    availability_zone: AvailabilityZone | None = None
    """The one zone that its nodes are in; without it any of the platform's."""
    efa: bool = False
    """Whether nodes start with all their EFA interfaces, and workers get the share of their accelerators."""
    labels: dict[str, LabelValue] = Field(default_factory=dict, max_length=50)
    """Labels for the nodes, beside the library's own."""
    taints: list[Taint] = Field(default_factory=list, max_length=20)
    """Taints for the nodes, beside that of their accelerators."""
    disk: Disk = default({})
    """The nodes' EBS volume."""
    image_acceleration: ImageAcceleration = default({"sociParallelPull": {}})
    """How images come to a new node; without it they are pulled, in parallel."""

    @property
    def image_snapshot_id(self) -> str | None:
        """Snapshot that the nodes' data volume is made from; None where they pull their images."""
        snapshot = self.image_acceleration.ebs_snapshot
        return snapshot.id if snapshot else None
