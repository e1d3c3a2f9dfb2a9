"""Adds resource handlers to the emulator's CloudFormation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

Properties = Mapping[str, Any]
Made = tuple[str, dict[str, str]]


@dataclass(frozen=True)
class ResourceRequest:
    """A request of CloudFormation to a resource handler.

    Parameters
    ----------
    stack
        Name of the stack. Empty at deletion.
    logical_id
        Name of the resource in the template. Empty at deletion.
    properties
        The resource's properties with resolved references.
    physical_id
        What the creation returned. Empty at creation.
    """

    stack: str
    logical_id: str
    properties: Properties
    physical_id: str = ""


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
    """Register a handler for a resource type in the emulator's CloudFormation."""

    def create(logical_id: str, properties: Properties, stack: str) -> Made:
        return handler.create(ResourceRequest(stack, logical_id, properties))

    def update(name: str, _: Properties, properties: Properties, stack: str, logical_id: str) -> Made:
        return handler.update(ResourceRequest(stack, logical_id, properties, name))

    def delete(name: str, properties: Properties) -> None:
        handler.delete(ResourceRequest("", "", properties, name))

    _RESOURCE_HANDLERS[resource_type] = {
        "create": create,
        "update": update,
        "update_with_logical_id": True,
        "delete": delete,
    }
