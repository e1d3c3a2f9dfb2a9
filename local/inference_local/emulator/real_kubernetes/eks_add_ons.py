"""Installs the custom resource definitions of EKS add-ons, but not their pods.

The emulator only records an add-on. On EKS, later objects can use the kinds that it defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_local.control_plane.definitions import definitions
from inference_local.emulator.real_kubernetes.clusters import Hosts
from inference_local.emulator.resource_handlers.registry import Made, ResourceRequest, register
from inference_local.emulator.resource_handlers.stub_table import STUBS
from inference_local.emulator.resource_handlers.stubs import StubHandler

RESOURCE_TYPE = "AWS::EKS::Addon"
#: API group of the definitions, per add-on.
GROUPS: Mapping[str, str] = MappingProxyType(
    {"aws-secrets-store-csi-driver-provider": "secrets-store.csi.x-k8s.io"}
)


class AddOnHandler(StubHandler):
    """Records an add-on and installs its definitions."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(RESOURCE_TYPE, STUBS[RESOURCE_TYPE])
        self._hosts = hosts

    def update(self, request: ResourceRequest) -> Made:
        """Record the add-on, also when it is new, and add its kinds to the API server."""
        made = super().update(request)
        group = GROUPS.get(request.properties["AddonName"])
        if group is not None:
            found = [each for each in definitions(print) if each["spec"]["group"] == group]
            self._hosts.of(request.properties["ClusterName"]).plane.kubectl.apply(found)
        return made


def register_add_ons(hosts: Hosts) -> None:
    """Register add-ons in the emulator's CloudFormation."""
    register(RESOURCE_TYPE, AddOnHandler(hosts))
