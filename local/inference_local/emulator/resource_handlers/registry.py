"""Adds resource handlers to the emulator's CloudFormation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import botocore.session
from botocore.model import ListShape, MapShape, Shape, StructureShape
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS, _delete_predecessor

from inference_catalog.cloudformation_types import cloudformation_types
from inference_local.emulator.refusals import CUSTOM_NAME_REPLACED

# Properties of CloudFormation as parameters of a call, by botocore's model.
#
# The names are the same but for capital letters, and those of maps are unchanged.

_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "integer": int,
    "long": int,
    "double": float,
    "boolean": lambda value: str(value).lower() == "true",
    "string": str,
}


def api_parameters(service: str, operation: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties of CloudFormation as parameters of a call. Names that the call lacks are left out."""
    shape = botocore.session.get_session().get_service_model(service).operation_model(operation).input_shape
    converted: dict[str, Any] = _converted(shape, properties)
    return converted


def _converted(shape: Shape, value: Any) -> Any:
    if isinstance(shape, StructureShape):
        # Capital letters differ by more than the first: "EFSVolumeConfiguration", "FilesystemId" and "IAM"
        # are "efsVolumeConfiguration", "fileSystemId" and "iam".
        members = {name.lower(): name for name in shape.members}
        return {
            members[name.lower()]: _converted(shape.members[members[name.lower()]], each)
            for name, each in value.items()
            if name.lower() in members
        }
    if isinstance(shape, ListShape):
        return [_converted(shape.member, each) for each in value]
    if isinstance(shape, MapShape):
        if isinstance(value, list):  # tags of a template are a list, those of some calls a map
            return {each["Key"]: str(each["Value"]) for each in value}
        return {name: str(each) for name, each in value.items()}
    convert = _SCALARS.get(shape.type_name)
    return convert(value) if convert else value


Properties = Mapping[str, Any]
Made = tuple[str, dict[str, str]]


@dataclass(frozen=True)
class ResourceRequest:
    """A request of CloudFormation to a resource handler."""

    stack: str
    """Name of the stack. Empty at deletion."""
    logical_id: str
    """Name of the resource in the template. Empty at deletion."""
    properties: Properties
    """The resource's properties with resolved references."""
    physical_id: str = ""
    """What the creation returned. Empty at creation."""
    previous: Properties = field(default_factory=dict)
    """The properties before an update. Empty at creation and deletion."""


class ResourceHandler(Protocol):
    """Handles a resource type. An exception fails the resource, with its text as the reason."""

    def create(self, request: ResourceRequest) -> Made:
        """Create the resource and return its physical id and attributes."""

    def update(self, request: ResourceRequest) -> Made:
        """Change the resource to its new properties and return its physical id and attributes."""

    def delete(self, request: ResourceRequest) -> None:
        """Remove the resource."""


def handled_types() -> frozenset[str]:
    """Return every resource type that the emulator handles."""
    return frozenset(_RESOURCE_HANDLERS)


def register(resource_type: str, handler: ResourceHandler) -> None:
    """Register a handler for a resource type in the emulator's CloudFormation.

    If a property changes that cannot, CloudFormation makes another resource, then deletes the old one. It
    refuses to if both would have the name that the template gives them.
    """
    known = cloudformation_types().get(resource_type)

    def create(logical_id: str, properties: Properties, stack: str) -> Made:
        return handler.create(ResourceRequest(stack, logical_id, properties))

    def update(name: str, old: Properties, properties: Properties, stack: str, logical_id: str) -> Made:
        if known and known.replaced_by(old, properties):
            named = [properties.get(each) for each in known.names]
            if named and all(named) and named == [old.get(each) for each in known.names]:
                raise CUSTOM_NAME_REPLACED.error(name=name)
            made = create(logical_id, properties, stack)
            _delete_predecessor(delete, name, old)
            return made
        return handler.update(ResourceRequest(stack, logical_id, properties, name, old))

    def delete(name: str, properties: Properties) -> None:
        handler.delete(ResourceRequest("", "", properties, name))

    _RESOURCE_HANDLERS[resource_type] = {
        "create": create,
        "update": update,
        "update_with_logical_id": True,
        "delete": delete,
    }
