"""Limits that decide how many clusters and accounts a fleet needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FleetLimit:
    """One limit."""

    name: str
    """The catalogue's key."""
    limit: str
    """What is limited, in AWS's words where it is a quota."""
    scope: Literal["cell", "account"]
    """What it holds for: ``cell`` is one cluster in its own VPC, ``account`` one account in one region."""
    counts: str
    """What is counted: a field of the use of a fleet."""
    unit: str
    """Counted unit. ``/s`` means per second."""
    value: float
    """Default value."""
    most: float | None
    """The most that AWS documents. None if it is raised on request and no ceiling is documented."""
    code: str
    """Code in Service Quotas; empty if it is none or unknown."""
    source: str
    """Page that documents the value."""
