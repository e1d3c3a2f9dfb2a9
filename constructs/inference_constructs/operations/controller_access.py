"""A controller's access to the Kubernetes API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

_RBAC = "rbac.authorization.k8s.io"


class ControllerAccess(Construct):
    """An access entry that gives a role a Kubernetes group, and the group's narrow ClusterRole.

    Access policies of EKS are too broad: none allows to cordon and to evict without more. So the role gets a
    group (https://docs.aws.amazon.com/eks/latest/userguide/create-k8s-group-access-entry.html).

    Parameters
    ----------
    cluster, cluster_name
        The cluster, and its name as a plain string.
    role
        Role of the controller.
    group
        Kubernetes group, also the name of the ClusterRole. It may not begin with ``system:``.
    rules
        What the group may do, as rules of a ClusterRole.
    namespace, namespace_rules
        A namespace, and what the group may do in it alone, as rules of a Role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        cluster_name: str,
        role: iam.IRole,
        group: str,
        rules: Sequence[Mapping[str, Any]],
        namespace: str = "",
        namespace_rules: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        eks.CfnAccessEntry(
            self,
            "Entry",
            cluster_name=cluster_name,
            kubernetes_groups=[group],
            principal_arn=role.role_arn,
            type="STANDARD",
        )
        eks.KubernetesManifest(
            self,
            "Permissions",
            cluster=cluster,
            manifest=[
                *_granted(group, "ClusterRole", rules, {}),
                *(
                    _granted(group, "Role", namespace_rules, {"namespace": namespace})
                    if namespace_rules
                    else []
                ),
            ],
        )


def _granted(
    group: str, kind: str, rules: Sequence[Mapping[str, Any]], place: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """Return a role, and its binding to the group of the same name."""
    common = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": group, **place}}
    return [
        {**common, "kind": kind, "rules": [dict(rule) for rule in rules]},
        {
            **common,
            "kind": f"{kind}Binding",
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": group},
            "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group}],
        },
    ]
