"""Limits that decide how many clusters and accounts a fleet needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FleetLimit:
    """One limit.

    Parameters
    ----------
    name
        The catalogue's key.
    limit
        What is limited, in AWS's words where it is a quota.
    scope
        What it holds for: ``cell`` is one cluster in its own VPC, ``account`` one account in one region.
    counts
        What is counted: a field of the use of a fleet.
    unit
        Counted unit. ``/s`` means per second.
    value
        Default value.
    most
        The most that AWS documents. None if it is raised on request and no ceiling is documented.
    code
        Code in Service Quotas; empty if it is none or unknown.
    source
        Page that documents the value.
    """

    name: str
    limit: str
    scope: Literal["cell", "account"]
    counts: str
    unit: str
    value: float
    most: float | None
    code: str
    source: str
