"""Registers real control planes in the emulator's EKS, with access entries and the kinds of add-ons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ministack import app
from ministack.core.responses import get_account_id, get_region
from ministack.services import eks

from inference_local.control_plane.definitions import definitions
from inference_local.emulator.real_kubernetes import clusters, lambda_programs, node_groups
from inference_local.emulator.real_kubernetes.clusters import Hosts
from inference_local.emulator.real_kubernetes.registry_charts import write_charts
from inference_local.emulator.resource_handlers.registry import Made, ResourceRequest, register
from inference_local.emulator.resource_handlers.stubs import STUBS, StubHandler

# Treats requests on loopback as encrypted.
#
# Policies such as that of the bootstrap bucket refuse requests without TLS. The emulator listens on this
# machine's loopback interface, without TLS, and enforces IAM.

_PLAIN_PIN = app.pin_request_origin


def _pin(source_address: str, _: bool) -> None:  # noqa: FBT001 - ministack's own signature
    _PLAIN_PIN(source_address, True)  # noqa: FBT003


def apply() -> None:
    """Apply the patch: every request satisfies ``aws:SecureTransport``."""
    app.pin_request_origin = _pin


_ACCESS_ENTRY = "AWS::EKS::AccessEntry"
_FIRST_ERROR_STATUS = 400
_ADD_ON = "AWS::EKS::Addon"
#: API group of the definitions, per add-on.
_GROUPS: Mapping[str, str] = MappingProxyType(
    {"aws-secrets-store-csi-driver-provider": "secrets-store.csi.x-k8s.io"}
)


class AddOnHandler(StubHandler):
    """Records an add-on and installs the definitions of its kinds, which later objects use, but no pods."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(_ADD_ON, STUBS[_ADD_ON])
        self._hosts = hosts

    def update(self, request: ResourceRequest) -> Made:
        """Record the add-on, also when it is new, and add its kinds to the API server."""
        made = super().update(request)
        group = _GROUPS.get(request.properties["AddonName"])
        if group is not None:
            found = [each for each in definitions(print) if each["spec"]["group"] == group]
            self._hosts.of(request.properties["ClusterName"]).plane.kubectl.apply(found)
        return made


class AccessEntryHandler:
    """Gives an IAM principal access to a cluster, with its access policies and Kubernetes groups.

    ministack's EKS has access entries, its CloudFormation has not. An entry is complete when the API server
    applies its permissions.
    """

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


def register_real_kubernetes(directory: Path) -> None:
    """Make EKS clusters real, and let CDK's handler access them.

    directory: Folder for control planes, layers and charts. It is created.
    """
    charts = directory / "charts"
    write_charts(charts, print)
    apply()
    lambda_programs.apply(directory / "lambda", charts)
    register(_ACCESS_ENTRY, AccessEntryHandler())
    hosts = clusters.apply(directory / "clusters")
    node_groups.apply(hosts)
    register(_ADD_ON, AddOnHandler(hosts))
