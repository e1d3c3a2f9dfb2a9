"""What the shift decided before. It is one item of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentState:
    """What was decided about a deployment."""

    floor: int
    """Floor of its replicas."""
    lower_since: float | None = None
    """Since when a lower floor would have sufficed, in seconds since the epoch. None if it would not."""
    lent: float = 0.0
    """Share of the deployment's capacity that batch had, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftState:
    """What the last decision left."""

    decided_at: float = 0.0
    """Time of the last decision, in seconds since the epoch."""
    deployments: Mapping[str, DeploymentState] = field(default_factory=dict)
    """State of each deployment by name."""

    def as_item(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return asdict(self)

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        """Return the state of what `as_item` returned. Numbers may be decimals, as DynamoDB returns them."""
        return cls(
            decided_at=float(item["decided_at"]),
            deployments={
                name: DeploymentState(
                    floor=int(each["floor"]),
                    lower_since=None if each["lower_since"] is None else float(each["lower_since"]),
                    lent=float(each["lent"]),
                )
                for name, each in item["deployments"].items()
            },
        )
