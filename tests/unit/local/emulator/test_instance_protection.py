"""Hosts protected from scale-in: the emulator changes what Auto Scaling changes, and refuses the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ministack.services import autoscaling

from inference_local.emulator.patches import instance_protection
from inference_local.emulator.refusals import AwsApiError

NAME = "hosts"
PROPERTIES = {
    "AutoScalingGroupName": NAME,
    "MinSize": "2",
    "MaxSize": "60",
    "NewInstancesProtectedFromScaleIn": "true",
}


@pytest.fixture
def group() -> Iterator[dict[str, Any]]:
    """Return a group of a template with two hosts."""
    instance_protection._create("Hosts", PROPERTIES, "stack")
    yield autoscaling._asgs[NAME]
    autoscaling._asgs.pop(NAME, None)


def change(*instances: str, group: str = NAME) -> str:
    """Take protection from hosts, and return the answer."""
    asked = {f"InstanceIds.member.{number}": each for number, each in enumerate(instances, start=1)}
    answer = instance_protection.set_protection(
        {"AutoScalingGroupName": group, "ProtectedFromScaleIn": "false", **asked}
    )
    return str(answer[2].decode())


def test_a_group_goes_when_its_hosts_are_not_protected(group: dict[str, Any]) -> None:
    """Red if a stack is deleted here that waits for hours on AWS."""
    first, second = (each["InstanceId"] for each in group["Instances"])
    with pytest.raises(AwsApiError, match="remaining instances are protected from scale-in"):
        instance_protection._delete(NAME, PROPERTIES)
    assert "SetInstanceProtectionResult" in change(first, second)
    instance_protection._update_group(
        {"AutoScalingGroupName": NAME, "DesiredCapacity": "3", "NewInstancesProtectedFromScaleIn": "false"}
    )
    assert [each["ProtectedFromScaleIn"] for each in group["Instances"]] == [False, False, False]
    instance_protection._delete(NAME, PROPERTIES)
    assert NAME not in autoscaling._asgs


def test_one_host_that_cannot_be_changed_fails_the_call_for_all(group: dict[str, Any]) -> None:
    """Red if a removal that AWS stops passes here: a host ended between the question and the call."""
    first, second = group["Instances"]
    second["LifecycleState"] = "Terminating:Wait"
    assert "is not in InService or EnteringStandby or Standby" in change(
        first["InstanceId"], second["InstanceId"]
    )
    assert f"i-0 is not part of Auto Scaling group {NAME}." in change(first["InstanceId"], "i-0")
    assert "at most 50" in change(*[first["InstanceId"]] * 51)
    assert "AutoScalingGroup name not found" in change(first["InstanceId"], group="other")
    assert first["ProtectedFromScaleIn"]
