"""Fields of Kubernetes objects that an API server does not let change.

Sources: ``Validate…Update`` of each kind in kubernetes/kubernetes, pkg/apis/{apps,batch,core,rbac}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference_catalog.cloudformation_types import value_at

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "ClusterRoleBinding": ("roleRef",),
    "DaemonSet": ("spec.selector",),
    "Deployment": ("spec.selector",),
    "Job": ("spec.completionMode", "spec.selector", "spec.template"),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.storageClassName", "spec.volumeMode"),
    "PriorityClass": ("preemptionPolicy", "value"),
    "RoleBinding": ("roleRef",),
    "Service": ("spec.clusterIP",),
    "StatefulSet": (
        "spec.podManagementPolicy",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    "StorageClass": ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
}


def immutable_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return what an API server says of each changed field that cannot change."""
    name = f'{new["kind"]} "{new["metadata"]["name"]}" is invalid'
    return [
        f"{name}: {path}: field is immutable"
        for path in _FIELDS.get(new["kind"], ())
        if value_at(old, path) != value_at(new, path)
    ]
