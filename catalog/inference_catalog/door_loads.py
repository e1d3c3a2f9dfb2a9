"""What a replica of the front door, and the store of its budgets, need for requests.

Only plans with a front door import this module.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from inference_catalog.entry_builder import build_entry
from inference_contracts.records import dataclass
from inference_contracts.units import MICROSECONDS_PER_SECOND

_FILE = Path(__file__).resolve().parent / "data" / "front_door.json"


@dataclass(frozen=True, slots=True)
class DoorReplicaLoad:
    """Measured processor time and memory of a replica of the front door: Envoy and the policy process."""

    name: str
    """Name of the proxy: ``envoy``."""
    microseconds_per_request: float
    microseconds_per_chunk: float
    """`microseconds_per_request`, `microseconds_per_chunk`: Processor time for a request with an API key and
    budgets, and for a chunk of a streamed answer."""
    memory_mib: int
    """Memory of a replica with few streams, in MiB."""
    kib_per_stream: float
    """Memory of each open stream, in KiB."""
    machine: str
    date: str
    source: str
    """`machine`, `date`, `source`: Where and when the figures were measured, and with what."""

    def busy_vcpus(self, requests_per_second: float, chunks_per_second: float) -> float:
        """Return the processors that a load keeps busy."""
        busy = (
            requests_per_second * self.microseconds_per_request
            + chunks_per_second * self.microseconds_per_chunk
        )
        return busy / MICROSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class DoorStoreLoad:
    """Measured processor time of the store of budgets, and the limit of one of its slots."""

    name: str
    """Name of the store: ``valkey``."""
    microseconds_per_reservation: float
    microseconds_per_settlement: float
    """`microseconds_per_reservation`, `microseconds_per_settlement`: Processor time of the scripts before and
    after a request."""
    microseconds_per_read: float
    """Processor time of a simple command."""
    writes_per_second_of_sums: float
    """Writes of a replica per second to a slot in which nothing is reserved: it adds up the costs between
    them."""
    units_per_slot_per_second: int
    """Most units (ECPU) per second of a slot of ElastiCache Serverless."""
    machine: str
    date: str
    source: str
    """`machine`, `date`, `source`: Where and when the figures were measured, and with what."""

    def units(self, microseconds: float) -> float:
        """Return the units of a script: its processor time as a multiple of a simple command's (estimate)."""
        return max(1.0, microseconds / self.microseconds_per_read)

    @property
    def units_per_reserved_request(self) -> float:
        """Units of a request that is reserved before, and settled after (estimate)."""
        return self.units(self.microseconds_per_reservation) + self.units(self.microseconds_per_settlement)

    @property
    def reserved_requests_per_slot(self) -> float:
        """Requests per second that one slot can reserve and settle: what limits first, time or units."""
        each = self.microseconds_per_reservation + self.microseconds_per_settlement
        by_units = self.units_per_slot_per_second / self.units_per_reserved_request
        return min(MICROSECONDS_PER_SECOND / each, by_units)


def door_load(name: str = "envoy") -> DoorReplicaLoad:
    """Return what a replica of the front door needs.

    Parameters
    ----------
    name
        Name of the proxy.
    """
    return build_entry(DoorReplicaLoad, {"name": name, **_entries()["door"][name]}, _FILE)


def door_store_load(name: str = "valkey") -> DoorStoreLoad:
    """Return what the store of budgets needs.

    Parameters
    ----------
    name
        Name of the store.
    """
    return build_entry(DoorStoreLoad, {"name": name, **_entries()["store"][name]}, _FILE)


@cache
def _entries() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return document
