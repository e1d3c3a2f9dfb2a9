"""The EKS cluster, its system nodes, and access to it from other stacks."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.eks.cluster_add_ons import (
        AFTER_NODES,
        BEFORE_NODES,
        SECRETS,
        AddOn,
        ClusterAddOns,
    )
    from inference_constructs.eks.inference_cluster import InferenceCluster
    from inference_constructs.eks.kubectl_access import KubectlAccess
    from inference_constructs.eks.pod_identity import PodIdentity
    from inference_constructs.eks.pod_scaler import SCALER_ACCOUNT, PodScaler
    from inference_constructs.eks.secret_sync import SecretSync
    from inference_constructs.eks.system_nodegroup import NodeRole, SystemNodegroup
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "AFTER_NODES",
    "BEFORE_NODES",
    "SCALER_ACCOUNT",
    "SECRETS",
    "AddOn",
    "ClusterAddOns",
    "InferenceCluster",
    "KubectlAccess",
    "NodeRole",
    "PodIdentity",
    "PodScaler",
    "SecretSync",
    "SystemNodegroup",
]
