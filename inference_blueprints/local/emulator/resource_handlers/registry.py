"""Adds handlers to the emulator's CloudFormation, in the form in which it calls them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

from ministack.core.responses import get_account_id, get_region
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_blueprints.local.emulator.resource_handlers.stub_table import STUBS, Stub

Properties = Mapping[str, Any]
Attributes = dict[str, str]


class ResourceHandler(Protocol):
    """What a resource type does at creation, update and deletion; an exception fails the resource."""

    def create(self, stack: str, logical_id: str, properties: Properties) -> tuple[str, Attributes]:
        """Make the resource and return its physical id and attributes."""

    def update(
        self, stack: str, logical_id: str, physical_id: str, old: Properties, new: Properties
    ) -> tuple[str, Attributes]:
        """Change the resource and return its physical id and attributes."""

    def delete(self, physical_id: str, properties: Properties) -> None:
        """Remove the resource."""


def register(resource_type: str, handler: ResourceHandler) -> None:
    """Let the emulator's CloudFormation call a handler for a resource type.

    Parameters
    ----------
    resource_type
        Such as ``AWS::EC2::NatGateway``.
    handler
        What to do.
    """

    def create(logical_id: str, properties: Properties, stack: str) -> tuple[str, Attributes]:
        return handler.create(stack, logical_id, properties)

    def update(
        physical_id: str, old: Properties, new: Properties, stack: str, logical_id: str
    ) -> tuple[str, Attributes]:
        return handler.update(stack, logical_id, physical_id, old, new)

    _RESOURCE_HANDLERS[resource_type] = {
        "create": create,
        "update": update,
        "update_with_logical_id": True,
        "delete": handler.delete,
    }


class StubHandler:
    """Accepts a resource and makes nothing.

    Parameters
    ----------
    resource_type
        For messages.
    stub
        Identifier, attributes and required properties.
    """

    def __init__(self, resource_type: str, stub: Stub) -> None:
        self._resource_type = resource_type
        self._stub = stub

    def create(self, stack: str, logical_id: str, properties: Properties) -> tuple[str, Attributes]:
        """Return the same identifier whenever the same resource of the same stack is asked for."""
        missing = [name for name in self._stub.required if name not in properties]
        if missing:
            raise ValueError(f"{self._resource_type} {logical_id} lacks {', '.join(missing)}")
        values = {
            **properties,
            "account": get_account_id(),
            "region": get_region(),
            "unique": hashlib.sha256(f"{stack}/{logical_id}".encode()).hexdigest()[:17],
        }
        values["id"] = self._stub.identifier.format_map(values)
        attributes = {name: form.format_map(values) for name, form in self._stub.attributes.items()}
        return values["id"], attributes

    def update(
        self, stack: str, logical_id: str, physical_id: str, old: Properties, new: Properties
    ) -> tuple[str, Attributes]:
        """Return what a creation with the new properties returns."""
        return self.create(stack, logical_id, new)

    def delete(self, physical_id: str, properties: Properties) -> None:
        """Do nothing: nothing was made."""


def register_stubs() -> None:
    """Add every stub that the table names.

    Raises
    ------
    RuntimeError
        When the emulator has learnt a type itself: the stub would hide the better answer.
    """
    known = sorted(set(STUBS) & set(_RESOURCE_HANDLERS))
    if known:
        raise RuntimeError(f"the emulator handles {', '.join(known)} itself; delete these stubs")
    for resource_type, stub in STUBS.items():
        register(resource_type, StubHandler(resource_type, stub))
