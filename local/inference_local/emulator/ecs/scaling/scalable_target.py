"""A scalable target: its bounds and cooldowns, and the policies and schedules that choose its capacity."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from inference_blueprints.serving.autoscaling.cron_schedule import CronError, CronSchedule

# Step scaling policies that set an exact capacity.
#
# Source: API StepAdjustment and StepScalingPolicyConfiguration
# (https://docs.aws.amazon.com/autoscaling/application/APIReference/API_StepAdjustment.html): bounds are
# differences from the alarm's threshold; above the threshold the lower bound belongs to a step, below it the
# upper one.

Shape = Mapping[str, Any]


def check_steps(settings: Shape) -> None:
    """Check a ``StepScalingPolicyConfiguration``.

    Raises ValueError if it is of a type that the templates do not have.
    """
    if settings.get("AdjustmentType") != "ExactCapacity":
        raise ValueError(
            f"the stand-in has no AdjustmentType {settings.get('AdjustmentType')}: use ExactCapacity"
        )


def stepped_capacity(settings: Shape, breach: float) -> int | None:
    """Return the capacity of the step that a breach is in, None if it is in none.

    settings: ``StepScalingPolicyConfiguration``.
    breach: Value of the metric less the threshold of the alarm.
    """
    for step in settings["StepAdjustments"]:
        lower = float(step.get("MetricIntervalLowerBound", -math.inf))
        upper = float(step.get("MetricIntervalUpperBound", math.inf))
        if (lower <= breach < upper) if breach >= 0 else (lower < breach <= upper):
            return int(step["ScalingAdjustment"])
    return None


# Target tracking policies: their alarms, and the capacity that keeps a metric at its target.
#
# Source: Application Auto Scaling User Guide, "How target tracking scaling works"
# (https://docs.aws.amazon.com/autoscaling/application/userguide/target-tracking-scaling-policy-overview.html):
# the service creates the alarms, computes the adjustment from metric and target, and rounds so that there is
# never too little capacity. The number of data points is that of the alarms that AWS creates
# (https://repost.aws/questions/QUVoLPVCU5QamquwCMrFMOzw/aws-ecs-uses-fargate-service-auto-scaling-which-is-not-working-properly).
# AWS does not document how far below the target capacity is removed, nor how much at once: ours are 90%, and
# in proportion to the metric.

HIGH: Final = "AlarmHigh"
LOW: Final = "AlarmLow"
_PERIOD_SECONDS: Final = 60
_POINTS: Final = {HIGH: 3, LOW: 15}
_LOW_SHARE: Final = 0.9


def tracking_alarms(resource: str, identifier: str, policy_arn: str, settings: Shape) -> list[dict[str, Any]]:
    """Return the alarms of a policy, as requests of PutMetricAlarm.

    resource: The scaled resource, such as ``service/cluster/name``.
    identifier: Last part of the alarms' names.
    policy_arn: ARN of the policy, the alarms' action.
    settings: ``TargetTrackingScalingPolicyConfiguration``.
    Raises ValueError if the policy follows something else than one metric.
    """
    metric = settings.get("CustomizedMetricSpecification") or {}
    if "MetricName" not in metric:
        raise ValueError("the stand-in follows a CustomizedMetricSpecification with one metric only")
    target = float(settings["TargetValue"])
    kinds = {
        HIGH: ("GreaterThanThreshold", target),
        **({} if settings.get("DisableScaleIn") else {LOW: ("LessThanThreshold", _LOW_SHARE * target)}),
    }
    return [
        {
            "AlarmName": f"TargetTracking-{resource}-{kind}-{identifier}",
            "Namespace": metric["Namespace"],
            "MetricName": metric["MetricName"],
            "Dimensions": list(metric.get("Dimensions") or ()),
            "Statistic": metric["Statistic"],
            "Period": _PERIOD_SECONDS,
            "EvaluationPeriods": _POINTS[kind],
            "ComparisonOperator": comparison,
            "Threshold": threshold,
            "AlarmActions": [policy_arn],
            **({"Unit": metric["Unit"]} if metric.get("Unit") else {}),
        }
        for kind, (comparison, threshold) in kinds.items()
    ]


def tracked_capacity(capacity: int, value: float, target: float) -> int:
    """Return the capacity that keeps a metric at its target.

    capacity: Capacity under which the metric was measured.
    value: Newest data point of the metric.
    target: Target of the policy.
    """
    return math.ceil(capacity * value / target)


# Scheduled actions: when they come, in the form of the templates.
#
# Source: API PutScheduledAction, Schedule: ``cron(minutes hours day-of-month month day-of-week year)``, in
# UTC or the action's time zone.

_FORM: Final = re.compile(r"cron\(((?:\S+ ){5})\*\)")
#: AWS counts weekdays from 1 (Sunday), others from 0. Names are the same everywhere.
_WEEKDAY_NUMBER: Final = re.compile(r"\d")


@dataclass(frozen=True)
class ScheduledChange:
    """A scheduled action."""

    name: str
    resource: str
    """The scaled resource."""
    schedule: CronSchedule
    """When it comes."""
    bounds: Mapping[str, int]
    """``ScalableTargetAction``."""
    request: Mapping[str, Any]
    """What PutScheduledAction gave."""


def scheduled_change(request: Mapping[str, Any]) -> ScheduledChange:
    """Read a request of PutScheduledAction.

    Raises ValueError if its schedule is of a form that the templates do not have.
    """
    found = _FORM.fullmatch(request["Schedule"])
    fields = found[1].strip() if found else ""
    if not found or _WEEKDAY_NUMBER.search(fields.split()[-1]):
        raise ValueError(
            f"{request['Schedule']}: the stand-in reads cron(minutes hours day month weekday *), with names "
            "of weekdays"
        )
    try:
        schedule = CronSchedule.read(fields, request.get("Timezone") or "UTC")
    except CronError as error:
        raise ValueError(str(error)) from error
    return ScheduledChange(
        request["ScheduledActionName"],
        request["ResourceId"],
        schedule,
        request["ScalableTargetAction"],
        request,
    )


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
