"""What docs/capacity-shift.md says of freezing, overriding and rolling back, done as it says."""

from __future__ import annotations

import json
import re
import shlex

import boto3
import pytest

from inference_blueprints.resources import root
from inference_contracts.operations_names import freeze_parameter
from tests.runtime.capacity_shift.ecs_platform import ecs_configuration, floor, new_ecs_platform
from tests.runtime.capacity_shift.shift_platform import (
    FREEZE,
    NOW,
    PLATFORM,
    ShiftPlatform,
    new_platform,
    shift_configuration,
)

PAGE = (root() / "docs/capacity-shift.md").read_text("utf-8")


def documented(beginning: str) -> dict[str, str]:
    """Return the options of the one command of the page that begins so, and its last plain word as `name`."""
    (line,) = re.findall(rf"^{beginning} .*$", PAGE, re.MULTILINE)
    words = shlex.split(line)
    options = {
        word.removeprefix("--"): value
        for word, value in zip(words, [*words[1:], ""], strict=True)
        if word.startswith("--")
    }
    return {"object": words[3], **options}


def freeze(value: str) -> None:
    command = documented("aws ssm put-parameter")
    assert command["value"] == "shift"
    name = command["name"].replace("PLATFORM", PLATFORM)
    assert name == freeze_parameter(PLATFORM, "main") == FREEZE
    boto3.client("ssm").put_parameter(Name=name, Value=value, Type="String", Overwrite=True)


def override(platform: ShiftPlatform) -> int:
    """Patch the floor with the command of the page, and return it."""
    command = documented("kubectl patch")
    assert command["type"] == "merge"
    assert command["object"].replace("RELEASE", platform.workers.release) == platform.workers.name
    change = json.loads(command["patch"])
    platform.api.objects[f"scaledobjects/{platform.workers.name}"]["spec"].update(change["spec"])
    return int(change["spec"]["minReplicaCount"])


@pytest.mark.parametrize("value", ["shift", "all"])
def test_frozen_everything_stays_and_decisions_are_recorded(shifting: ShiftPlatform, value: str) -> None:
    run = shifting.new_run()
    run.run(NOW)
    freeze(value)
    shifting.script.floor, shifting.script.places, shifting.script.accelerators = 9, 16, 2
    run.run(NOW + 60)
    assert (shifting.api.floor(shifting.workers), shifting.api.quota()) == (6, 8)
    ceiling = shifting.ceiling()
    assert ceiling is not None
    assert ceiling["places"] == 4
    assert [each["deployments"][0]["floor"] for each in shifting.audits()] == [6, 9]


def test_an_override_stays_while_the_shift_is_frozen(shifting: ShiftPlatform) -> None:
    run = shifting.new_run()
    run.run(NOW)
    freeze("shift")
    floor = override(shifting)
    for minute in range(1, 4):
        run.run(NOW + 60 * minute)
    assert shifting.api.floor(shifting.workers) == floor == 8
    freeze("none")
    run.run(NOW + 240)
    assert shifting.api.floor(shifting.workers) == 6


def test_an_override_of_a_service_stays_while_the_shift_is_frozen(aws_in_process: None) -> None:
    on_ecs = new_ecs_platform(ecs_configuration())
    run = on_ecs.new_run()
    run.run(NOW)
    freeze("shift")
    command = documented("aws application-autoscaling register-scalable-target")
    name = command["resource-id"].replace("PLATFORM", PLATFORM).replace("RELEASE", on_ecs.workers.release)
    boto3.client("application-autoscaling").register_scalable_target(
        ServiceNamespace=command["service-namespace"],
        ScalableDimension=command["scalable-dimension"],
        ResourceId=name,
        MinCapacity=int(command["min-capacity"]),
    )
    run.run(NOW + 60)
    assert floor(on_ecs.workers) == 8
    freeze("none")
    run.run(NOW + 120)
    assert floor(on_ecs.workers) == 6


def test_an_override_without_a_freeze_is_set_back_within_a_minute(shifting: ShiftPlatform) -> None:
    run = shifting.new_run()
    run.run(NOW)
    override(shifting)
    run.run(NOW + 60)
    assert shifting.api.floor(shifting.workers) == 6


def test_rolled_back_to_observing_floors_and_quotas_stay_and_people_may_set_them(
    shifting: ShiftPlatform,
) -> None:
    shifting.new_run().run(NOW)
    shifting.configuration = shift_configuration("observe")
    shifting.script.floor = 9
    run = shifting.new_run()
    shifting.api.patches.clear()
    for minute in range(1, 4):
        run.run(NOW + 60 * minute)
    assert (shifting.api.floor(shifting.workers), shifting.api.quota()) == (6, 8)
    assert shifting.ceiling() == {"places": 4, "at": NOW}, "no longer renewed; batch does not read it either"
    floor = override(shifting)
    run.run(NOW + 240)
    assert shifting.api.floor(shifting.workers) == floor
    assert shifting.api.patches == []


def test_a_raised_minimum_of_the_blueprint_holds_for_good(aws_in_process: None) -> None:
    raised = new_platform(shift_configuration())
    raised.script.floor = 0
    raised.new_run().run(NOW)
    assert raised.api.floor(raised.workers) == raised.workers.least
