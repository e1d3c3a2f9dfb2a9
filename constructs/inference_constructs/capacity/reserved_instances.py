"""Reserved EC2 capacity as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class ReservedInstances:
    """Reserved EC2 capacity."""

    selector: Mapping[str, Any]
    """Which reservation: its ``id``, or ``tags`` that it has."""
    kind: Literal["default", "capacity-block"]
    """``default`` (On-Demand Capacity Reservation) or ``capacity-block``, as EC2 calls them."""
