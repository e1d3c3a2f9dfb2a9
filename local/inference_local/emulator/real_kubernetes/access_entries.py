"""Adds `AWS::EKS::AccessEntry` to ministack's CloudFormation. ministack's EKS already has it.

An entry is complete when the API server applies its permissions.
"""

from __future__ import annotations

import json
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services import eks

from inference_local.emulator.resource_handlers.registry import Made, ResourceRequest, register

RESOURCE_TYPE = "AWS::EKS::AccessEntry"
_FIRST_ERROR_STATUS = 400


class AccessEntryHandler:
    """Gives an IAM principal access to a cluster, with its access policies and Kubernetes groups."""

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
        """Replace the entry, which has no state."""
        self.delete(request)
        return self.create(request)

    def delete(self, request: ResourceRequest) -> None:
        """Remove the entry. Its cluster may be deleted already."""
        eks._delete_access_entry(request.properties["ClusterName"], request.properties["PrincipalArn"])


def _accepted(answer: tuple[int, dict[str, str], bytes]) -> None:
    """Raise an error with the message of EKS."""
    status, _, body = answer
    if status >= _FIRST_ERROR_STATUS:
        message: dict[str, Any] = json.loads(body)
        raise ValueError(message["message"])


def register_access_entries() -> None:
    """Register access entries in the emulator's CloudFormation."""
    register(RESOURCE_TYPE, AccessEntryHandler())
