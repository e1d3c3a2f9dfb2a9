"""What GPU health may do on EKS: read nodes and pods, and with `replace` cordon, drain and replace nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_constructs.operations.controller_access import ControllerAccess
from inference_contracts import operations_names

#: What the functions may do in the cluster. They patch `spec.unschedulable` and an annotation of nodes; RBAC
#: cannot say which fields a patch has.
HEALTH_RULES: Final[tuple[Mapping[str, Any], ...]] = (
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    {"apiGroups": ["karpenter.sh"], "resources": ["nodeclaims"], "verbs": ["get", "list", "delete"]},
)
#: What they may do among the serving pods alone: they drain no others.
_EVICTION_RULES: Final[tuple[Mapping[str, Any], ...]] = (
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAccess:
    """The access of GPU health to a cluster on EKS: a `HealthAccess`.

    Every node of a pool has a NodeClaim, so there is no permission for Auto Scaling groups.

    Parameters
    ----------
    cluster, cluster_name
        The cluster, imported, and its name as a plain string.
    model_namespace
        Namespace of the serving pods, which a replacement evicts.
    replaces
        Whether the functions may replace nodes. Otherwise they can only read.
    """

    cluster: eks.ICluster
    cluster_name: str
    model_namespace: str
    replaces: bool

    def give(self, scope: Construct, role: iam.Role) -> None:
        """Give the role a Kubernetes group with narrow permissions."""
        ControllerAccess(
            scope,
            "Access",
            cluster=self.cluster,
            cluster_name=self.cluster_name,
            role=role,
            group=operations_names.HEALTH_GROUP,
            rules=HEALTH_RULES if self.replaces else _reading(HEALTH_RULES),
            namespace=self.model_namespace,
            namespace_rules=_EVICTION_RULES if self.replaces else (),
        )


def _reading(rules: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rules without what changes something."""
    return [
        {**rule, "verbs": verbs}
        for rule in rules
        if (verbs := [verb for verb in rule["verbs"] if verb in ("get", "list")])
    ]
