"""A deployment to ECS keeps the smallest number of tasks that the capacity shift or a schedule has set."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.ecs_host_checks import kept_floors
from inference_blueprints.operate.changes.platform_change import Held, PlatformChange
from inference_contracts.ecs_names import LARGEST_NUMBER

STACK, SERVICE = "try-Model-chat", "chat-worker"
SCHEDULED = {"ScheduledActions": [{"ScheduledActionName": "day"}]}


class FakeScaling:
    """Application Auto Scaling with one target, or none."""

    def __init__(self, floor: int | None, ceiling: int = 12) -> None:
        self._floor, self._ceiling = floor, ceiling

    def client(self, service: str) -> FakeScaling:
        assert service == "application-autoscaling"
        return self

    def describe_scalable_targets(self, *, ServiceNamespace: str, ResourceIds: list[str]) -> dict[str, Any]:  # noqa: N803
        assert (ServiceNamespace, ResourceIds) == ("ecs", [f"service/try/{SERVICE}"])
        return {
            "ScalableTargets": []
            if self._floor is None
            else [{"ResourceId": ResourceIds[0], "MinCapacity": self._floor, "MaxCapacity": self._ceiling}]
        }


def written(
    old: tuple[int, int], new: tuple[int, int], floor: int | None, *, shifts: bool = True, **more: Any
) -> int:
    """Return the floor that CloudFormation gets, with the old and new range of the blueprint."""
    return range_written(old, new, FakeScaling(floor), shifts=shifts, **more)[0]


def range_written(
    old: tuple[int, int],
    new: tuple[int, int],
    scaling: FakeScaling,
    *,
    shifts: bool = True,
    largest: int | None = None,
    **more: Any,
) -> tuple[int, int]:
    """Return the range that CloudFormation gets.

    largest: Largest number of the blueprint on a shared pool.
    """
    before, after = (
        {
            "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
            "Properties": {
                "MinCapacity": minimum,
                "MaxCapacity": maximum,
                "ResourceId": f"service/try/{SERVICE}",
            },
        }
        for minimum, maximum in (old, new)
    )
    cast("dict[str, Any]", after["Properties"]).update(more)
    if largest is not None:
        after["Metadata"] = {LARGEST_NUMBER: largest}
    properties = _deployed(before, after, scaling, shifts=shifts)
    return properties["MinCapacity"], properties["MaxCapacity"]


def _deployed(
    before: dict[str, Any], after: dict[str, Any], account: object, *, shifts: bool = True
) -> dict[str, Any]:
    """Return the properties of a resource that CloudFormation gets."""
    service = {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f":ecs:r:1:service/try/{SERVICE}"]]}
    policy = {
        "Type": "AWS::IAM::Policy",
        "Properties": {
            "PolicyDocument": {
                "Statement": [
                    {"Action": "application-autoscaling:RegisterScalableTarget", "Resource": "*"},
                    {"Action": "ecs:UpdateService", "Resource": service},
                ]
            }
        },
    }
    change = PlatformChange(
        cast("Account", account),
        {},
        {STACK: {"Resources": {"It": before}}},
        {
            STACK: {"Resources": {"It": after}},
            "try-Operations": {"Resources": {"May": policy} if shifts else {}},
        },
    )
    template = copy.deepcopy(cast("dict[str, Any]", change.new[STACK]))
    for held in kept_floors(change):
        assert isinstance(held, Held)
        held.edit(template)
    found: dict[str, Any] = template["Resources"]["It"]["Properties"]
    return found


@pytest.mark.parametrize(
    ("new", "floor", "expected"),
    [
        ((4, 16), 9, 9),
        ((4, 16), 4, 4),
        ((4, 8), 9, 8),
        ((10, 16), 9, 10),
        # Nothing but the smallest number changes: nothing is written, and the shift stays the only owner.
        ((6, 12), 9, 4),
        ((10, 12), 9, 10),
        ((6, 16), None, 6),
    ],
)
def test_the_floor_that_holds_is_written_within_the_range(
    new: tuple[int, int], floor: int | None, expected: int
) -> None:
    """Red if scaling policies may end tasks that the forecast needs until the shift runs again."""
    assert written((4, 12), new, floor) == expected


def test_a_later_deployment_does_not_write_a_floor_that_an_earlier_one_kept() -> None:
    """The template has 9 since then, the blueprint says 4, and the shift has gone on to 7."""
    assert written((9, 16), (4, 16), 7) == 9


def test_a_floor_by_schedule_is_kept_until_its_next_action() -> None:
    """Red if a change of the range in the day lets tasks end until the next morning."""
    assert written((4, 12), (4, 16), 9, shifts=False, **SCHEDULED) == 9


def test_without_shift_and_schedule_the_blueprint_says_the_floor() -> None:
    """Red if the floor of a shift that was turned off stays for good."""
    assert written((9, 16), (4, 16), 9, shifts=False) == 4


@pytest.mark.parametrize(
    ("new", "largest", "live", "expected"),
    [
        # The template has the share by priority; what the shift has set holds, within the blueprint's range.
        ((4, 10), 20, (9, 15), (9, 15)),
        ((4, 10), 12, (9, 15), (9, 12)),
        ((6, 10), 20, (4, 5), (6, 6)),
        # Only the share changes: nothing is written.
        ((4, 14), 20, (9, 15), (4, 12)),
        ((4, 10), 14, (9, 15), (9, 14)),
    ],
)
def test_on_a_shared_pool_both_numbers_that_hold_are_written(
    new: tuple[int, int], largest: int, live: tuple[int, int], expected: tuple[int, int]
) -> None:
    """Red if a deployment ends tasks of a role, or lets it take the places of another one."""
    more: dict[str, Any] = {} if new == (4, 14) else {"RoleARN": "another"}
    assert range_written((4, 12), new, FakeScaling(*live), largest=largest, **more) == expected


class FakeEcs:
    """ECS with a service of so many tasks."""

    def __init__(self, desired: int) -> None:
        self._desired = desired

    def client(self, service: str) -> FakeEcs:
        assert service in ("application-autoscaling", "ecs")
        return self

    def get_paginator(self, _: str) -> FakeEcs:
        return self

    def paginate(self, *, cluster: str) -> list[dict[str, Any]]:
        return [{"serviceArns": [f"arn:aws:ecs:r:1:service/{cluster}/{SERVICE}"]}]

    def describe_services(self, **_: object) -> dict[str, Any]:
        found = {"serviceName": SERVICE, "status": "ACTIVE", "desiredCount": self._desired}
        return {"services": [found]}


@pytest.mark.parametrize(
    ("deployed", "new", "live", "expected"),
    [
        # Another version of the workers: CloudFormation writes the number with it.
        ({"DesiredCount": 0}, {"DesiredCount": 0, "TaskDefinition": "2"}, 7, 7),
        ({"DesiredCount": 0}, {"DesiredCount": 3, "TaskDefinition": "2"}, 2, 3),
        # An earlier deployment kept 5. Nothing else changes, so nothing is written.
        ({"DesiredCount": 5}, {"DesiredCount": 0}, 7, 5),
        # A service that scales by load has no number.
        ({}, {"TaskDefinition": "2"}, 7, None),
    ],
)
def test_workers_that_serve_batch_alone_keep_their_number(
    deployed: dict[str, Any], new: dict[str, Any], live: int, expected: int | None
) -> None:
    """Red if each new version of batch's workers ends all of them."""
    of_service = {"ServiceName": SERVICE, "TaskDefinition": "1"}
    before, after = (
        {"Type": "AWS::ECS::Service", "Properties": {**of_service, **each}} for each in (deployed, new)
    )
    assert _deployed(before, after, FakeEcs(live)).get("DesiredCount") == expected


def test_a_shift_that_was_turned_off_keeps_no_number() -> None:
    of_service = {"ServiceName": SERVICE, "DesiredCount": 0}
    before, after = (
        {"Type": "AWS::ECS::Service", "Properties": {**of_service, "TaskDefinition": each}} for each in "12"
    )
    assert _deployed(before, after, FakeEcs(7), shifts=False)["DesiredCount"] == 0
