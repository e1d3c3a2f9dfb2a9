"""What KEDA scales on the control plane: a Deployment per branch, and a node with room for their pods."""

from __future__ import annotations

from typing import Any

from inference_local.control_plane.control_plane import FAKE_NODE_ANNOTATION
from tests.cluster.autoscaling.branches import Branch


def roomy_node() -> dict[str, Any]:
    """Return the node."""
    resources = {"cpu": "64", "memory": "64Gi", "pods": "500"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node", "annotations": FAKE_NODE_ANNOTATION},
        "status": {"allocatable": resources, "capacity": resources},
    }


def in_namespace(manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return a manifest with a namespace."""
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def branch_deployment(branch: Branch, namespace: str) -> dict[str, Any]:
    """Return the Deployment of a branch. Its pods find no node if the branch is not to be ready."""
    labels = {"app": branch.name}
    specification: dict[str, Any] = {"containers": [{"name": "worker", "image": "worker"}]}
    if not branch.ready:
        specification |= {"nodeSelector": {"none": "such"}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": branch.name},
        "spec": {
            "replicas": branch.start,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": specification},
        },
    }
    return in_namespace(deployment, namespace)
