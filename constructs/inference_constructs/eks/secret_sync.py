"""Kubernetes permissions of the Secrets Store driver."""

from __future__ import annotations

from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

#: Service account of the driver in the EKS add-on `aws-secrets-store-csi-driver-provider`.
_DRIVER = {"kind": "ServiceAccount", "name": "secrets-store-csi-driver", "namespace": "aws-secrets-manager"}
_RBAC = "rbac.authorization.k8s.io"
_NAME = "inference-blueprints-secret-sync"
#: The driver watches its secrets by their label, in all namespaces.
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "patch", "update")


class SecretSync(eks.KubernetesManifest):
    """The driver's permissions to read secrets, and to write them in one namespace.

    In the chart, `syncSecret` enables them, but the EKS add-on accepts this value and ignores it
    (https://github.com/aws/secrets-store-csi-driver-provider-aws/issues/597).

    Parameters
    ----------
    cluster
        The cluster.
    namespace
        Namespace in which pods mount secrets. It must exist.
    """

    def __init__(self, scope: Construct, construct_id: str, *, cluster: eks.ICluster, namespace: str) -> None:
        manifest = [
            *_granted("ClusterRole", _READ, {"name": _NAME}),
            *_granted("Role", _WRITE, {"name": _NAME, "namespace": namespace}),
        ]
        super().__init__(scope, construct_id, cluster=cluster, manifest=manifest)


def _granted(kind: str, verbs: tuple[str, ...], metadata: dict[str, str]) -> list[dict[str, Any]]:
    """Return a role for secrets and its binding to the driver."""
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": list(verbs)}
    reference = {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]}
    common = {"apiVersion": f"{_RBAC}/v1", "metadata": metadata}
    return [
        {**common, "kind": kind, "rules": [rule]},
        {**common, "kind": f"{kind}Binding", "roleRef": reference, "subjects": [_DRIVER]},
    ]
