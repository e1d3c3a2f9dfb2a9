"""The operating systems that nodes can boot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from inference_catalog.addresses import PODS_PER_NODE
from inference_contracts.records import dataclass

#: Key of an operating system in ``nodes.json``.
SystemName = Literal["bottlerocket", "al2023"]

#: Memory that kubelet reserves for itself and the container runtime, in MiB: 255, plus 11 for each pod of the
#: configured pod limit. Bottlerocket computes it so, regardless of the type's interfaces (Karpenter 1.14.1,
#: ``kubeReservedResources``). AL2023 would count the pods that the type's interfaces allow, so its node class
#: sets this value.
KUBE_RESERVED_MIB = 255 + 11 * PODS_PER_NODE


@dataclass(frozen=True, slots=True)
class OperatingSystem:
    """An operating system that nodes can boot."""

    name: SystemName
    """Its key in the catalogue."""
    ami_family: str
    """Karpenter's name for it, such as ``Bottlerocket``."""
    version: str
    """Release, such as ``v1.66.0``."""
    oldest: str
    """Oldest release that supports the settings of the nodes."""
    root_volume_gib: int
    """Space of the operating system itself on EBS, in GiB. It holds the largest of its images."""
    unbootable_families: Mapping[str, str]
    """Families of instance types that do not boot its image, with the report of the fault."""
    pairs_efa_with_gpus: bool
    """Whether a pod with a part of the node gets the EFA interfaces beside its GPUs."""
    starts_from_snapshot: bool
    """Whether nodes can start from a snapshot with container images."""
    has_device_plugin: bool
    """Whether the image for NVIDIA GPUs contains their device plug-in."""
    shared_folder: str
    """Folder of a node that its pods share, on the NVMe array if there is one."""
