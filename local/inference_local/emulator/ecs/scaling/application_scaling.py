"""Application Auto Scaling: targets, policies and scheduled actions, moved on by `step`.

Sources: API RegisterScalableTarget, PutScalingPolicy and PutScheduledAction
(https://docs.aws.amazon.com/autoscaling/application/APIReference/Welcome.html); Amazon CloudWatch User Guide,
"Alarm actions" (an alarm with an Auto Scaling action invokes it once a minute while it stays in the state);
Amazon ECS Developer Guide, service-autoscaling-targettracking.html (scale-in needs all policies, none during
a deployment, and a policy without data changes nothing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from inference_local.emulator.ecs.scaling.scalable_target import (
    HIGH,
    LOW,
    SCHEDULED,
    ProposedCapacity,
    ScalableTarget,
    ScalingActivity,
    ScheduledChange,
    Shape,
    stepped_capacity,
    tracked_capacity,
)

#: "the alarm continues to invoke the action once per minute that the alarm remains in the new state".
_INVOKED_SECONDS: Final = 60.0
#: Cooldown of ECS services without one of their own (API TargetTrackingScalingPolicyConfiguration).
_COOLDOWN_SECONDS: Final = 300.0
TRACKING: Final = "TargetTrackingScaling"
_KEPT_ACTIVITIES: Final = 100


class ScaledServices(Protocol):
    """The services that are scaled."""

    def state(self, resource: str) -> tuple[int, int, bool] | None:
        """Return the desired and the running count, and whether a deployment is in progress.

        None if the service does not exist or is not active.
        """

    def set_capacity(self, resource: str, capacity: int) -> None:
        """Set the desired count (API UpdateService)."""


class ScalingAlarms(Protocol):
    """The alarms of CloudWatch."""

    def raised(self) -> Mapping[str, Shape]:
        """Return the alarms in the state ALARM whose actions are enabled, by name."""

    def value(self, alarm: Shape, at_seconds: float) -> float | None:
        """Return the newest data point of what an alarm watches."""


@dataclass
class KeptPolicy:
    """A scaling policy."""

    arn: str
    request: dict[str, Any]
    """What PutScalingPolicy gave."""
    alarms: tuple[str, ...] = ()
    """Names of the alarms that the service made for it."""

    @property
    def tracks(self) -> bool:
        """Whether it is a target tracking policy."""
        return str(self.request["PolicyType"]) == TRACKING

    @property
    def settings(self) -> Shape:
        """Its configuration."""
        name = "TargetTracking" if self.tracks else "Step"
        found: Shape = self.request[f"{name}ScalingPolicyConfiguration"]
        return found

    def cooldown(self, *, out: bool) -> float:
        """Return its cooldown in a direction."""
        name = ("ScaleOutCooldown" if out else "ScaleInCooldown") if self.tracks else "Cooldown"
        return float(self.settings.get(name, _COOLDOWN_SECONDS))


@dataclass
class ApplicationScaling:
    """Everything that is registered, by resource or ARN. All times are those of the alarms' clock."""

    services: ScaledServices
    alarms: ScalingAlarms
    """`services`, `alarms`: What it reads and changes."""
    wall_time: Callable[[float], float] = lambda seconds: seconds
    """Turns a time of its clock into seconds since 1970, for answers."""
    targets: dict[str, ScalableTarget] = field(default_factory=dict)
    policies: dict[str, KeptPolicy] = field(default_factory=dict)
    scheduled: dict[tuple[str, str], ScheduledChange] = field(default_factory=dict)
    activities: list[tuple[str, str, float, ScalingActivity | None]] = field(default_factory=list)
    _invoked: dict[str, float] = field(default_factory=dict)
    _stepped_at: float | None = None

    def keep_bounds(self, resource: str, cause: str, now: float) -> None:
        """Bring the capacity of a resource within its bounds.

        A call of RegisterScalableTarget "changes the resource's current capacity to a value that is inside of
        this range", and so does a scheduled action.
        """
        target, state = self.targets[resource], self.services.state(resource)
        if state is None:
            return
        capacity = target.within(state[0])
        if capacity != state[0]:
            self.services.set_capacity(resource, capacity)
            self._note(resource, f"{cause}: {state[0]} -> {capacity}", now, None)

    def step(self, now: float) -> None:
        """Take the scheduled actions that have come, and act on raised alarms."""
        before = now if self._stepped_at is None else self._stepped_at
        self._stepped_at = now
        for change in self.scheduled.values():
            if change.schedule.next_after(before) <= now:
                self._take(change, now)
        raised = self.alarms.raised()
        due = {
            name: alarm
            for name, alarm in raised.items()
            if now - self._invoked.get(name, -_INVOKED_SECONDS) >= _INVOKED_SECONDS
        }
        self._invoked = {name: at for name, at in self._invoked.items() if name in raised}
        self._invoked |= dict.fromkeys(due, now)
        for target in list(self.targets.values()):
            self._complete(target, now)
            policies = [
                each for each in self.policies.values() if each.request["ResourceId"] == target.resource
            ]
            if any(policy.arn in alarm["AlarmActions"] for policy in policies for alarm in due.values()):
                self._scale(target, policies, raised, now)

    def _take(self, change: ScheduledChange, now: float) -> None:
        target = self.targets.get(change.resource)
        if target is None or target.suspended.get(SCHEDULED):
            return
        target.minimum = int(change.bounds.get("MinCapacity", target.minimum))
        target.maximum = int(change.bounds.get("MaxCapacity", target.maximum))
        self.keep_bounds(change.resource, f"scheduled action {change.name}", now)

    def _complete(self, target: ScalableTarget, now: float) -> None:
        """End the activity under way once the service has the tasks."""
        last = target.last
        if last is None or last.ended_at is not None:
            return
        state = self.services.state(target.resource)
        if state is None or state[0] == state[1]:
            last.ended_at = now

    def _scale(
        self,
        target: ScalableTarget,
        policies: list[KeptPolicy],
        raised: Mapping[str, Shape],
        now: float,
    ) -> None:
        state = self.services.state(target.resource)
        if state is None:
            return
        capacity, _, deploying = state
        more: list[ProposedCapacity] = []
        fewer: list[ProposedCapacity] = []
        for policy in policies:
            for name, alarm in raised.items():
                if policy.arn in alarm["AlarmActions"]:
                    base = target.base(capacity, now) if f"-{HIGH}-" in name else capacity
                    proposal = self._proposed(policy, name, alarm, base, now)
                    if proposal is not None:
                        (more if proposal.adds else fewer).append(proposal)
        activity = target.scale_out(capacity, more)
        if activity is None and not deploying and _all_low(policies, raised):
            activity = target.scale_in(capacity, fewer, now)
        if activity is not None:
            target.last = activity
            self.services.set_capacity(target.resource, activity.after)
            self._note(target.resource, f"{activity.before} -> {activity.after}", now, activity)

    def _proposed(
        self, policy: KeptPolicy, name: str, alarm: Shape, base: int, now: float
    ) -> ProposedCapacity | None:
        """Return what a policy asks for, from the capacity that counts for it."""
        value = self.alarms.value(alarm, now)
        if value is None:
            return None
        if policy.tracks:
            adds = f"-{HIGH}-" in name
            wanted = tracked_capacity(base, value, float(policy.settings["TargetValue"]))
            return ProposedCapacity(wanted, policy.cooldown(out=adds), adds=adds)
        stepped = stepped_capacity(policy.settings, value - float(alarm["Threshold"]))
        if stepped is None:
            return None
        adds = stepped > base
        return ProposedCapacity(stepped, policy.cooldown(out=adds), adds=adds)

    def _note(self, resource: str, cause: str, now: float, activity: ScalingActivity | None) -> None:
        self.activities.insert(0, (resource, cause, now, activity))
        del self.activities[_KEPT_ACTIVITIES:]


def _all_low(policies: list[KeptPolicy], raised: Mapping[str, Shape]) -> bool:
    """Whether every target tracking policy that may remove capacity is ready to."""
    return all(name in raised for policy in policies for name in policy.alarms if f"-{LOW}-" in name)
