"""Application Auto Scaling: bounds, target tracking, steps, cooldowns and schedules."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from inference_local.emulator.ecs.scaling.application_scaling import ApplicationScaling
from inference_local.emulator.ecs.scaling.scaling_api import ScalingApi
from inference_local.emulator.refusals import AwsApiError

SERVICE = "service/platform/workers"
PLACE = {
    "ServiceNamespace": "ecs",
    "ResourceId": SERVICE,
    "ScalableDimension": "ecs:service:DesiredCount",
}


@dataclass
class Parts:
    """A service, the alarms of CloudWatch, and the calls."""

    desired: int = 1
    running: int = 1
    deploying: bool = False
    alarms: dict[str, dict[str, Any]] = field(default_factory=dict)
    states: set[str] = field(default_factory=set)
    values: dict[str, float] = field(default_factory=dict)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.scaling = ApplicationScaling(self, self)
        numbers = itertools.count()
        self.api = ScalingApi(
            self.scaling,
            self,
            clock=lambda: self.now,
            new_id=lambda: f"id-{next(numbers)}",
            place="us-west-2:123456789012",
        )

    def state(self, resource: str) -> tuple[int, int, bool] | None:
        return (self.desired, self.running, self.deploying) if resource == SERVICE else None

    def set_capacity(self, resource: str, capacity: int) -> None:
        assert resource == SERVICE
        self.desired = self.running = capacity

    def put(self, request: Mapping[str, Any]) -> None:
        self.alarms[request["AlarmName"]] = dict(request)

    def delete(self, name: str) -> None:
        del self.alarms[name]

    def raised(self) -> dict[str, dict[str, Any]]:
        return {name: alarm for name, alarm in self.alarms.items() if name in self.states}

    def value(self, alarm: Mapping[str, Any], at_seconds: float) -> float | None:
        assert at_seconds == self.now
        return self.values.get(alarm.get("MetricName", ""))

    def register(self, minimum: int, maximum: int, **more: Any) -> None:
        self.api.answer(
            "RegisterScalableTarget", {**PLACE, "MinCapacity": minimum, "MaxCapacity": maximum, **more}
        )

    def track(self, metric: str, target: float) -> str:
        """Put a policy that follows a metric, and return its ARN."""
        configuration = {
            "TargetValue": target,
            "ScaleOutCooldown": 60,
            "ScaleInCooldown": 300,
            "CustomizedMetricSpecification": {
                "Namespace": "Load",
                "MetricName": metric,
                "Dimensions": [{"Name": "role", "Value": "worker"}],
                "Statistic": "Average",
            },
        }
        answer = self.api.answer(
            "PutScalingPolicy",
            {
                **PLACE,
                "PolicyName": metric,
                "PolicyType": "TargetTrackingScaling",
                "TargetTrackingScalingPolicyConfiguration": configuration,
            },
        )
        return str(answer["PolicyARN"])

    def measure(self, metric: str, value: float, at: float, *, high: bool = False, low: bool = False) -> int:
        """Give a metric a value and its alarms a state, step, and return the desired count."""
        self.values[metric] = value
        mine = {name for name, alarm in self.alarms.items() if alarm["MetricName"] == metric}
        self.states -= mine
        self.states |= {name for name in mine if high and "AlarmHigh" in name}
        self.states |= {name for name in mine if low and "AlarmLow" in name}
        return self.step(at)

    def step(self, at: float) -> int:
        self.now = at
        self.scaling.step(at)
        return self.desired


def test_a_registration_brings_the_capacity_within_the_bounds() -> None:
    # API RegisterScalableTarget: "it changes the resource's current capacity to a value that is inside of
    # this range".
    parts = Parts()
    parts.register(2, 5)
    assert parts.desired == 2
    parts.desired = 9
    parts.register(2, 5)
    assert parts.desired == 5
    [described] = parts.api.answer("DescribeScalableTargets", {"ServiceNamespace": "ecs"})["ScalableTargets"]
    assert (described["MinCapacity"], described["MaxCapacity"]) == (2, 5)


def test_target_tracking_adds_in_proportion_and_rounds_up_within_the_bounds() -> None:
    parts = Parts()
    parts.register(1, 5)
    parts.track("load", 10)
    assert {each["Threshold"] for each in parts.alarms.values()} == {10, 9}
    assert parts.measure("load", 21, 0, high=True) == 3
    assert parts.measure("load", 60, 1000, high=True) == 5


def test_within_its_cooldown_a_scale_out_happens_for_a_larger_need_alone() -> None:
    # The capacity that was added counts as part of the next one.
    parts = Parts()
    parts.register(1, 9)
    parts.track("load", 10)
    assert parts.measure("load", 20, 0, high=True) == 2
    parts.step(1)
    assert parts.measure("load", 20, 60, high=True) == 2
    assert parts.measure("load", 40, 60.2, high=True) == 2, "an alarm is acted on once a minute"
    parts.states.clear()
    parts.step(60.4)
    assert parts.measure("load", 40, 60.6, high=True) == 4


def test_after_the_cooldown_the_present_capacity_counts() -> None:
    parts = Parts()
    parts.register(1, 9)
    parts.track("load", 10)
    parts.measure("load", 20, 0, high=True)
    parts.step(1)
    assert parts.measure("load", 20, 70, high=True) == 4


def test_scale_in_needs_all_policies_and_takes_the_largest_capacity() -> None:
    parts = Parts(desired=6, running=6)
    parts.register(1, 9)
    parts.track("load", 10)
    parts.track("queue", 10)
    assert parts.measure("load", 2, 0, low=True) == 6, "the other policy is not ready"
    assert parts.measure("queue", 5, 120, low=True) == 3, "not 2, which the load alone would allow"


def test_scale_in_waits_for_its_cooldown_and_a_scale_out_ends_it() -> None:
    parts = Parts(desired=8, running=8)
    parts.register(1, 9)
    parts.track("load", 10)
    assert parts.measure("load", 5, 0, low=True) == 4
    parts.step(1)
    assert parts.measure("load", 5, 120, low=True) == 4
    assert parts.measure("load", 15, 130, high=True) == 6
    parts.step(131)
    parts.states.clear()
    assert parts.measure("load", 5, 140, low=True) == 3


def test_no_scale_in_while_the_service_is_deployed_but_a_scale_out() -> None:
    # Amazon ECS Developer Guide, service-autoscaling-targettracking.html.
    parts = Parts(desired=4, running=4, deploying=True)
    parts.register(1, 9)
    parts.track("load", 10)
    assert parts.measure("load", 2, 0, low=True) == 4
    assert parts.measure("load", 20, 60, high=True) == 8


def test_without_data_nothing_changes() -> None:
    parts = Parts(desired=4, running=4)
    parts.register(1, 9)
    parts.track("load", 10)
    parts.states |= set(parts.alarms)
    assert parts.step(0) == 4


def test_suspended_directions_do_nothing() -> None:
    parts = Parts(desired=4, running=4)
    parts.register(
        1, 9, SuspendedState={"DynamicScalingInSuspended": True, "DynamicScalingOutSuspended": True}
    )
    parts.track("load", 10)
    assert parts.measure("load", 20, 0, high=True) == 4
    assert parts.measure("load", 2, 60, low=True) == 4


def _step(number: int, lower: float | None, upper: float | None) -> dict[str, float]:
    bounds = {"MetricIntervalLowerBound": lower, "MetricIntervalUpperBound": upper}
    return {"ScalingAdjustment": number, **{name: each for name, each in bounds.items() if each is not None}}


def test_a_step_policy_sets_the_number_of_its_step() -> None:
    parts = Parts(desired=0, running=0)
    parts.register(0, 9)
    settings = {
        "AdjustmentType": "ExactCapacity",
        "Cooldown": 300,
        "StepAdjustments": [_step(1, 0, 4), _step(3, 4, None)],
    }
    arn = parts.api.answer(
        "PutScalingPolicy",
        {
            **PLACE,
            "PolicyName": "backlog",
            "PolicyType": "StepScaling",
            "StepScalingPolicyConfiguration": settings,
        },
    )["PolicyARN"]
    alarm = {"AlarmName": "backlog", "MetricName": "backlog", "Threshold": 0.5, "AlarmActions": [arn]}
    parts.alarms["backlog"] = alarm
    parts.states.add("backlog")
    parts.values["backlog"] = 1
    assert parts.step(0) == 1
    parts.values["backlog"] = 4.5  # the lower bound belongs to the step
    assert parts.step(60) == 3
    parts.values["backlog"] = 2
    assert parts.step(120) == 1, "a scale-out's cooldown does not hold a scale-in back"


def test_a_scheduled_action_sets_the_bounds_at_its_time() -> None:
    parts = Parts(now=datetime(2026, 11, 2, 6, 59, tzinfo=UTC).timestamp())  # a Monday
    parts.register(1, 9)
    for name, hour, minimum in (("day", 8, 4), ("night", 18, 2)):
        parts.api.answer(
            "PutScheduledAction",
            {
                **PLACE,
                "ScheduledActionName": name,
                "Schedule": f"cron(0 {hour} ? * MON *)",
                "Timezone": "Europe/Berlin",
                "ScalableTargetAction": {"MinCapacity": minimum},
            },
        )
    parts.step(parts.now)
    assert parts.step(parts.now + 60) == 4
    assert parts.step(parts.now + 36_000) == 4, "a smaller minimum does not end tasks"
    assert parts.scaling.targets[SERVICE].minimum == 2


def test_what_the_templates_do_not_use_is_refused() -> None:
    parts = Parts()
    with pytest.raises(AwsApiError, match="not registered"):
        parts.track("load", 10)
    parts.register(1, 9)
    with pytest.raises(AwsApiError, match="use ExactCapacity"):
        parts.api.answer(
            "PutScalingPolicy",
            {
                **PLACE,
                "PolicyName": "more",
                "PolicyType": "StepScaling",
                "StepScalingPolicyConfiguration": {"AdjustmentType": "ChangeInCapacity"},
            },
        )
    with pytest.raises(AwsApiError, match="names of weekdays"):
        parts.api.answer(
            "PutScheduledAction",
            {
                **PLACE,
                "ScheduledActionName": "numbered",
                "Schedule": "cron(0 8 ? * 2 *)",
                "ScalableTargetAction": {"MinCapacity": 1},
            },
        )


def test_a_deregistered_target_takes_its_policies_and_alarms_along() -> None:
    parts = Parts()
    parts.register(1, 9)
    parts.track("load", 10)
    parts.api.answer("DeregisterScalableTarget", PLACE)
    assert (parts.alarms, parts.scaling.policies, parts.scaling.targets) == ({}, {}, {})
