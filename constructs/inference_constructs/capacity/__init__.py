"""Accelerated nodes: Karpenter's permissions, pools of nodes, and baked images."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.capacity.efa_security_group import EfaSecurityGroup
    from inference_constructs.capacity.image_baker import ImageBaker
    from inference_constructs.capacity.job_queue import JobQueue, QueueProperties
    from inference_constructs.capacity.karpenter_identity import InterruptionQueue, KarpenterIdentity
    from inference_constructs.capacity.karpenter_pool import (
        KarpenterPool,
        NodeProperties,
        PoolProperties,
        node_taints,
    )
    from inference_constructs.capacity.reserved_instances import ReservedInstances
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "EfaSecurityGroup",
    "ImageBaker",
    "InterruptionQueue",
    "JobQueue",
    "KarpenterIdentity",
    "KarpenterPool",
    "NodeProperties",
    "PoolProperties",
    "QueueProperties",
    "ReservedInstances",
    "node_taints",
]
