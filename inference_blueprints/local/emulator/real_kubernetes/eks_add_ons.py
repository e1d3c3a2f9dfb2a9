"""Add-ons that bring custom resource definitions: the definitions are installed, the add-on's pods are not.

The emulator records an add-on and installs nothing; on EKS the objects that come after it find its kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.local.control_plane.definitions import definitions
from inference_blueprints.local.emulator.real_kubernetes.clusters import Hosts
from inference_blueprints.local.emulator.resource_handlers.registry import Made, ResourceRequest, register
from inference_blueprints.local.emulator.resource_handlers.stub_table import STUBS
from inference_blueprints.local.emulator.resource_handlers.stubs import StubHandler

RESOURCE_TYPE = "AWS::EKS::Addon"
#: Add-on to the API group of its definitions.
GROUPS: Mapping[str, str] = MappingProxyType(
    {"aws-secrets-store-csi-driver-provider": "secrets-store.csi.x-k8s.io"}
)


class AddOnHandler(StubHandler):
    """Records an add-on and installs its definitions."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(RESOURCE_TYPE, STUBS[RESOURCE_TYPE])
        self._hosts = hosts

    def create(self, request: ResourceRequest) -> Made:
        """Record the add-on, and let the API server know its kinds."""
        made = super().create(request)
        group = GROUPS.get(request.properties["AddonName"])
        if group is not None:
            found = [each for each in definitions(print) if each["spec"]["group"] == group]
            self._hosts.of(request.properties["ClusterName"]).plane.kubectl.apply(found)
        return made

    update = create


def register_add_ons(hosts: Hosts) -> None:
    """Let the emulator's CloudFormation install the definitions of add-ons."""
    register(RESOURCE_TYPE, AddOnHandler(hosts))
