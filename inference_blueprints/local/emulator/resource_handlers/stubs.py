"""Registers the resource types of `stub_table`, which are accepted but not created."""

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
    """Accepts a resource, but creates nothing.

    Parameters
    ----------
    stub
        Identifier, attributes and required properties.
    """

    def __init__(self, resource_type: str, stub: Stub) -> None:
        self._resource_type = resource_type
        self._stub = stub

    def create(self, request: ResourceRequest) -> Made:
        """Return the same result each time the same resource of the same stack is created."""
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
        """Do nothing, because nothing was created."""


def register_stubs() -> None:
    """Register every stub of the table.

    Raises
    ------
    RuntimeError
        If the emulator handles one of the types itself. The stub would hide the better result.
    """
    known = sorted(set(STUBS) & handled_types())
    if known:
        raise RuntimeError(f"the emulator handles {', '.join(known)} itself; delete these stubs")
    for resource_type, stub in STUBS.items():
        register(resource_type, StubHandler(resource_type, stub))
