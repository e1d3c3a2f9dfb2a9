"""A scalable target: its bounds, its cooldowns, and the capacity that its policies choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Shape = Mapping[str, Any]

_IN: Final = "DynamicScalingInSuspended"
_OUT: Final = "DynamicScalingOutSuspended"
SCHEDULED: Final = "ScheduledScalingSuspended"


@dataclass
class ScalingActivity:
    """A change of the capacity by a policy. Its cooldown begins when the resource has reached it."""

    before: int
    after: int
    """`before`, `after`: The capacities."""
    cooldown_seconds: float
    """Cooldown of the policy that changed it."""
    ended_at: float | None = None
    """When the resource had the capacity. None before."""

    @property
    def adds(self) -> bool:
        """Whether it is a scale-out."""
        return self.after > self.before

    def holds(self, now: float) -> bool:
        """Whether it is under way, or its cooldown is."""
        return self.ended_at is None or now < self.ended_at + self.cooldown_seconds


@dataclass(frozen=True)
class ProposedCapacity:
    """What a policy whose alarm is raised asks for."""

    capacity: int
    cooldown_seconds: float
    """Its cooldown in this direction."""
    adds: bool
    """Whether it is a scale-out."""


@dataclass
class ScalableTarget:
    """A scalable target."""

    resource: str
    """Such as ``service/cluster/name``."""
    minimum: int
    maximum: int
    """`minimum`, `maximum`: Its bounds."""
    created_at: float
    suspended: Mapping[str, bool] = field(default_factory=dict)
    """``SuspendedState``."""
    last: ScalingActivity | None = None

    def within(self, capacity: int) -> int:
        """Return the nearest capacity within the bounds (API RegisterScalableTarget)."""
        return min(self.maximum, max(self.minimum, capacity))

    def base(self, capacity: int, now: float) -> int:
        """Return the capacity that a scale-out is computed from.

        "While the cooldown period is in effect, the capacity added by the initiating scale-out activity is
        calculated as part of the desired capacity for the next scale-out activity." (API
        TargetTrackingScalingPolicyConfiguration, ScaleOutCooldown; API StepScalingPolicyConfiguration)
        """
        last = self.last
        return last.before if last is not None and last.adds and last.holds(now) else capacity

    def scale_out(self, capacity: int, proposals: list[ProposedCapacity]) -> ScalingActivity | None:
        """Return the scale-out that policies ask for: the largest ("Multiple scaling policies").

        A scale-out ends the cooldown of a scale-in.
        """
        if self.suspended.get(_OUT) or not proposals:
            return None
        largest = max(proposals, key=lambda each: each.capacity)
        wanted = self.within(largest.capacity)
        return ScalingActivity(capacity, wanted, largest.cooldown_seconds) if wanted > capacity else None

    def scale_in(
        self, capacity: int, proposals: list[ProposedCapacity], now: float
    ) -> ScalingActivity | None:
        """Return the scale-in that all policies agree on: the smallest step.

        "scale-in activities are blocked until the cooldown period has expired" (ScaleInCooldown); of several
        policies the largest capacity counts (API PutScalingPolicy).
        """
        if self.suspended.get(_IN) or not proposals:
            return None
        if self.last is not None and not self.last.adds and self.last.holds(now):
            return None
        smallest = max(proposals, key=lambda each: each.capacity)
        wanted = self.within(smallest.capacity)
        return ScalingActivity(capacity, wanted, smallest.cooldown_seconds) if wanted < capacity else None
