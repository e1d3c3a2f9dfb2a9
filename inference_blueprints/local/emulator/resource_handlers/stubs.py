"""Registers the resource types of `stub_table`: accepted, and nothing is made."""

from __future__ import annotations

import hashlib

from ministack.core.responses import get_account_id, get_region

from inference_blueprints.local.emulator.resource_handlers.registry import (
    Made,
    ResourceRequest,
    handled_types,
    register,
)
from inference_blueprints.local.emulator.resource_handlers.stub_table import STUBS, Stub


class StubHandler:
    """Accepts a resource and makes nothing.

    Parameters
    ----------
    stub
        Identifier, attributes and required properties.
    """

    def __init__(self, resource_type: str, stub: Stub) -> None:
        self._resource_type = resource_type
        self._stub = stub

    def create(self, request: ResourceRequest) -> Made:
        """Return the same answer whenever the same resource of the same stack is asked for."""
        missing = [name for name in self._stub.required if name not in request.properties]
        if missing:
            raise ValueError(f"{self._resource_type} {request.logical_id} lacks {', '.join(missing)}")
        values = {
            **request.properties,
            "account": get_account_id(),
            "region": get_region(),
            "unique": hashlib.sha256(f"{request.stack}/{request.logical_id}".encode()).hexdigest()[:17],
        }
        values["id"] = self._stub.identifier.format_map(values)
        attributes = {name: form.format_map(values) for name, form in self._stub.attributes.items()}
        return values["id"], attributes

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Do nothing, because nothing was made."""


def register_stubs() -> None:
    """Add every stub that the table names.

    Raises
    ------
    RuntimeError
        When the emulator has learnt a type itself: the stub would hide the better answer.
    """
    known = sorted(set(STUBS) & handled_types())
    if known:
        raise RuntimeError(f"the emulator handles {', '.join(known)} itself; delete these stubs")
    for resource_type, stub in STUBS.items():
        register(resource_type, StubHandler(resource_type, stub))
