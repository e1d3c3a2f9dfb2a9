"""A deployment to ECS keeps the smallest number of tasks that the capacity shift or a schedule has set."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.ecs_host_checks import kept_floors
from inference_blueprints.operate.changes.platform_change import Held, PlatformChange

STACK, SERVICE = "try-Model-chat", "chat-worker"
SCHEDULED = {"ScheduledActions": [{"ScheduledActionName": "day"}]}


class FakeScaling:
    """Application Auto Scaling with one target, or none."""

    def __init__(self, floor: int | None) -> None:
        self._floor = floor

    def client(self, service: str) -> FakeScaling:
        assert service == "application-autoscaling"
        return self

    def describe_scalable_targets(self, *, ServiceNamespace: str, ResourceIds: list[str]) -> dict[str, Any]:  # noqa: N803
        assert (ServiceNamespace, ResourceIds) == ("ecs", [f"service/try/{SERVICE}"])
        return {
            "ScalableTargets": []
            if self._floor is None
            else [{"ResourceId": ResourceIds[0], "MinCapacity": self._floor}]
        }


def written(
    old: tuple[int, int], new: tuple[int, int], floor: int | None, *, shifts: bool = True, **more: Any
) -> int:
    """Return the floor that CloudFormation gets, with the old and new range of the blueprint."""
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
        cast("Account", FakeScaling(floor)),
        {},
        {STACK: {"Resources": {"Target": before}}},
        {
            STACK: {"Resources": {"Target": after}},
            "try-Operations": {"Resources": {"May": policy} if shifts else {}},
        },
    )
    template = copy.deepcopy(cast("dict[str, Any]", change.new[STACK]))
    for held in kept_floors(change):
        assert isinstance(held, Held)
        held.edit(template)
    return int(template["Resources"]["Target"]["Properties"]["MinCapacity"])


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
