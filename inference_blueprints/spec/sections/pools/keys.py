"""Pools: nodes with accelerators, their purchase option and their number."""

from typing import Literal

from pydantic import Field

import inference_catalog as catalog
from inference_blueprints.spec.section import (
    AvailabilityZone,
    CapacityReservationId,
    Choice,
    InstanceTypeName,
    LabelValue,
    Name,
    QualifiedName,
    Section,
    SnapshotId,
    UtcTime,
    default,
)
from inference_catalog import InstanceType
from inference_contracts.health_names import RepairOwner


class OnDemand(Section):
    """On-demand instances."""


class Spot(Section):
    """Spot instances, which AWS may reclaim with two minutes' notice."""

    on_demand_fallback: bool = False
    """Whether the pool uses on-demand instances when there is no spot capacity."""


class ReservedCapacity(Choice):
    """Selection of reserved capacity. The pool never starts an instance outside it."""

    id: CapacityReservationId | None = None
    """ID of one reservation, which has one instance type and one zone."""
    tags: dict[str, str] | None = Field(default=None, min_length=1, max_length=20)
    """Tags that a reservation must have. New reservations with these tags are used without a deploy."""


class CapacityBlock(Section):
    """Selection of Capacity Blocks, and the dates of one. Exactly one of `id` and `tags` is given."""

    id: CapacityReservationId | None = None
    """ID of one block, which has one instance type and one zone."""
    tags: dict[str, str] | None = Field(default=None, min_length=1, max_length=20)
    """Tags that a block must have. New blocks with these tags are used without a deploy."""
    starts: UtcTime | None = None
    """Time in UTC at which the block `id` starts. Before it, `validate` and `plan` warn."""
    ends: UtcTime | None = None
    """Time in UTC at which the block `id` ends. After it, `validate` and `plan` warn."""


class Purchase(Choice):
    """Purchase option of the pool's instances."""

    on_demand: OnDemand | None = None
    """On-demand instances."""
    spot: Spot | None = None
    """Spot instances."""
    reservation: ReservedCapacity | None = None
    """On-Demand Capacity Reservations."""
    capacity_block: CapacityBlock | None = None
    """Capacity Blocks for ML. Nodes drain 40 minutes before the block ends."""


class NodeCount(Section):
    """Number of nodes of a pool."""

    min: int = Field(default=0, ge=0, le=5000)
    """Minimum number of nodes, which run even if no pod needs them. With 0, the pool can become empty."""
    max: int = Field(ge=1, le=5000)
    """Maximum number of nodes. It also limits the accelerators that Karpenter starts."""


class Taint(Section):
    """A taint that keeps other pods off the nodes. Models that use the pool tolerate it."""

    key: QualifiedName
    """Key of the taint."""
    value: LabelValue = ""
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """Effect on pods that do not tolerate the taint."""


class Disk(Section):
    """EBS volume of a node. It holds the images, or only the operating system if the node has NVMe."""

    size_gib: int = Field(default=200, ge=50, le=16384)
    """Size in GiB."""
    node_cache_gib: int | None = Field(default=None, ge=0, le=131_072)
    """Largest size of the folder in which the workers of a node share weights and compiled kernels, in GiB. 0
    switches it off. Without it, workers with a commit as `revision` share a copy if it fits."""


class SociParallelPull(Section):
    """Nodes pull several parts of an image layer in parallel."""


class EbsSnapshot(Section):
    """Nodes start with their images on the EBS volume. The NVMe of the instance types stays unused."""

    id: SnapshotId | None = None
    """ID of the snapshot that `blueprints image-cache bake` creates. Without it, nodes pull their images."""


class ImageAcceleration(Choice):
    """Source of a new node's images."""

    soci_parallel_pull: SociParallelPull | None = None
    """Pull the images from the registry, in parallel."""
    ebs_snapshot: EbsSnapshot | None = None
    """Create the volume from a snapshot that holds the images."""


class SharedUse(Section):
    """Several models share the pool by the hour: each minute, the capacity shift decides who has how much."""


class Pool(Section):
    """A pool of interchangeable nodes."""

    name: Name
    """Name by which deployments refer to the pool."""
    instance_types: list[InstanceTypeName] = Field(min_length=1, max_length=50)
    """EC2 instance types. All must have the same CPU architecture and the same accelerator."""
    purchase: Purchase = default({"onDemand": {}})
    """Purchase option of the instances. Without it, on demand."""
    nodes: NodeCount
    """Number of nodes."""
    availability_zone: AvailabilityZone | None = None
    """The only zone of the nodes. Without it, any zone of the platform."""
    efa: bool = False
    """Whether nodes have EFA. Each worker gets the interfaces that belong to its share of accelerators."""
    labels: dict[str, LabelValue] = Field(default_factory=dict, max_length=50)
    """Labels for the nodes, in addition to the library's own."""
    taints: list[Taint] = Field(default_factory=list, max_length=20)
    """Taints for the nodes, in addition to the one for accelerators."""
    disk: Disk = default({})
    """EBS volume of the nodes."""
    image_acceleration: ImageAcceleration = default({"sociParallelPull": {}})
    """Source of a new node's images. Without it, the node pulls them in parallel."""
    shared: SharedUse | None = None
    """With `shared: {}`, several models share the pool by the hour. Their largest numbers of workers may then
    together exceed it, and the section `capacityShift`, which is required, decides each minute how many each
    has. Models on it need a `priority`. On ECS, `nodes.min` must be
    `nodes.max`."""
    repaired_by: RepairOwner = "karpenter"
    """Who replaces broken nodes. `karpenter`: on EKS, Karpenter's node repair, which is on for all pools or
    for none; on ECS, what ECS and EC2 do themselves. `gpuHealth`: that section of this file. `nvSentinel`: an
    NVSentinel that you installed, on EKS only. `nobody`: people."""

    @property
    def types(self) -> tuple[InstanceType, ...]:
        """The catalogue's entries of the instance types, in their order, without unknown ones.

        A rule reports unknown ones, so a valid blueprint has none. All have the same architecture and
        accelerator, for which the first stands.
        """
        known = catalog.instance_types()
        return tuple(known[name] for name in self.instance_types if name in known)

    @property
    def image_snapshot_id(self) -> str | None:
        """ID of the snapshot for the nodes' data volume. None if nodes pull their images."""
        snapshot = self.image_acceleration.ebs_snapshot
        return snapshot.id if snapshot else None
