"""Properties of the hosts of a pool as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inference_catalog import InstanceType
from inference_catalog.ecs_hosts import EcsHostKind, host_kind
from inference_constructs.capacity.reserved_instances import ReservedInstances


@dataclass(frozen=True)
class HostProperties:
    """The hosts of one pool."""

    pool: str
    """Name of the pool, and value of the attribute by which tasks find its hosts."""
    instance_types: Sequence[InstanceType]
    """Instance types of one architecture, all with the same accelerator."""
    disk_gib: int
    """Space for images and weights on EBS, in GiB."""
    min_hosts: int
    """Number of hosts that always run."""
    max_hosts: int
    """Maximum number of hosts."""
    efa: bool = False
    """Whether hosts start with all their EFA interfaces."""
    availability_zone: str | None = None
    """Name of the only zone of its hosts; None for any zone."""
    reserved: ReservedInstances | None = None
    """Reserved capacity, outside which no host starts."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The user's labels, which become attributes of the hosts."""
    images: Sequence[str] = ()
    """Images that hosts pull before they take tasks."""

    @property
    def kind(self) -> EcsHostKind:
        """Which image they boot. All types have the same accelerator, or none, and the same architecture."""
        return host_kind(self.instance_types[0])

    @property
    def uses_instance_store(self) -> bool:
        """Whether images and weights are on local NVMe, which all types then have."""
        return all(each.local_nvme_gb for each in self.instance_types)
