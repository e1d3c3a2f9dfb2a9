"""`AWS::EKS::AccessEntry`, which ministack's CloudFormation lacks and its EKS has.

An entry counts as made when the API server knows its rights.
"""

from __future__ import annotations

import json
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services import eks

from inference_blueprints.local.emulator.resource_handlers.registry import Made, ResourceRequest, register

RESOURCE_TYPE = "AWS::EKS::AccessEntry"
_FIRST_ERROR_STATUS = 400


class AccessEntryHandler:
    """Lets an IAM principal into a cluster, with the rights of its access policies and Kubernetes groups."""

    def create(self, request: ResourceRequest) -> Made:
        """Create the entry and attach its policies."""
        properties = request.properties
        cluster, principal = properties["ClusterName"], properties["PrincipalArn"]
        body = {
            "principalArn": principal,
            "type": properties.get("Type", "STANDARD"),
            "kubernetesGroups": properties.get("KubernetesGroups", []),
            "username": properties.get("Username", ""),
        }
        _accepted(eks._create_access_entry(cluster, body))
        for policy in properties.get("AccessPolicies", []):
            scope = policy["AccessScope"]
            association = {
                "policyArn": policy["PolicyArn"],
                "accessScope": {"type": scope["Type"], "namespaces": scope.get("Namespaces", [])},
            }
            _accepted(eks._associate_access_policy(cluster, principal, association))
        eks._reconcile_access_policy_rbac(cluster, get_account_id(), get_region())
        arn = eks._access_entries[eks._ae_key(cluster, principal)]["accessEntryArn"]
        return f"{principal}|{cluster}", {"AccessEntryArn": arn}

    def update(self, request: ResourceRequest) -> Made:
        """Replace the entry, which holds no state of its own."""
        self.delete(request)
        return self.create(request)

    def delete(self, request: ResourceRequest) -> None:
        """Remove the entry; its cluster may be gone already."""
        eks._delete_access_entry(request.properties["ClusterName"], request.properties["PrincipalArn"])


def _accepted(answer: tuple[int, dict[str, str], bytes]) -> None:
    """Fail with the words of EKS."""
    status, _, body = answer
    if status >= _FIRST_ERROR_STATUS:
        message: dict[str, Any] = json.loads(body)
        raise ValueError(message["message"])


def register_access_entries() -> None:
    """Let the emulator's CloudFormation make access entries."""
    register(RESOURCE_TYPE, AccessEntryHandler())
