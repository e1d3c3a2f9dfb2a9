"""What a replica requests of its node fits what Karpenter believes a node to have."""

from __future__ import annotations

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.nodes.node_share import node_share

NVIDIA = [
    each
    for each in catalog.instance_types().values()
    if each.accelerator and each.accelerator.manufacturer == "nvidia"
]


@pytest.mark.parametrize("instance_type", NVIDIA, ids=lambda each: each.name)
@pytest.mark.parametrize("accelerators", [1, 2, 4, 8])
def test_replicas_and_daemons_fit_what_karpenter_allots(
    instance_type: catalog.InstanceType, accelerators: int
) -> None:
    replicas = instance_type.accelerator_count // accelerators
    share = node_share((instance_type,), accelerators)
    # Karpenter 1.14, pkg/providers/instancetype/types.go: 7.5 % for the hypervisor; on Bottlerocket 255 MiB
    # and 11 MiB for each of the 110 pods of `kubelet.maxPods`; 100 MiB for eviction. 1 GiB is for daemons.
    allocatable_mib = instance_type.memory_mib * 0.925 - (255 + 11 * 110) - 100
    assert replicas * share.memory_mib <= allocatable_mib - 1024
    assert replicas * share.cpu <= instance_type.vcpu - 1
