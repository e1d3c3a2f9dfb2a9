"""Host names move to the front door and back only in an order in which callers are answered."""

from __future__ import annotations

import copy
import itertools
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.front_door_checks import moved_days, switched_host_names
from inference_blueprints.operate.changes.platform_change import Held, PlatformChange, Template
from inference_blueprints.operate.check_results import CheckResult
from inference_contracts.door_identities import OLD_NAMES_RULE

STACK = "try-Model-chat"
RULE = "AWS::ElasticLoadBalancingV2::ListenerRule"


def output(stack: str) -> dict[str, Any]:
    return {"Fn::GetStackOutput": {"StackName": f"try-{stack}", "OutputName": "It"}}


def model(*, to_door: bool, door: bool = True, old_names: bool = False, tasks: int = 2) -> dict[str, Any]:
    """Return the template of a model as the stacks write it, with what counts only."""
    targets = [{"TargetGroupArn": {"Ref": "Group"}, "Weight": 0 if to_door else 1}]
    if to_door:
        targets.insert(0, {"TargetGroupArn": output("FrontDoor"), "Weight": 1})
    role = {"Resource": output("Certificates")} if door else {}
    words = ["--config-yaml", f'{{"policies":{{"{OLD_NAMES_RULE}":{{}}}}}}'] if old_names else []
    return {
        "Resources": {
            "Rule": {
                "Type": RULE,
                "Properties": {"Actions": [{"ForwardConfig": {"TargetGroups": targets}}]},
            },
            "Role": {"Type": "AWS::IAM::Role", "Properties": role},
            "Task": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"Command": words}},
            "Service": {"Type": "AWS::ECS::Service", "Properties": {"DesiredCount": tasks}},
        }
    }


NONE = model(to_door=False, door=False)
MODELS = model(to_door=False, old_names=True)
DOOR = model(to_door=True)


def found(old: Template, new: Template) -> list[Any]:
    change = PlatformChange(cast("Account", None), {}, {STACK: old}, {STACK: new})
    return [*switched_host_names(change)]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [(NONE, DOOR, "give keys to callers"), (DOOR, NONE, "remove 'frontDoor' then")],
    ids=["a door", "no door"],
)
def test_what_leaves_callers_without_an_answer_is_refused(old: Template, new: Template, words: str) -> None:
    [error] = found(old, new)
    assert isinstance(error, CheckResult)
    assert error.severity == "error"
    assert words in error.message
    assert "deploy with 'oldHostNames: {models: {until: ...}}' first" in error.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((each, each) for each in (NONE, MODELS, DOOR)),
        *itertools.pairwise((NONE, MODELS, DOOR)),
        (MODELS, NONE),
        (DOOR, model(to_door=True, tasks=3)),
    ],
)
def test_each_step_of_the_switch_is_one_deployment(old: Template, new: Template) -> None:
    assert found(old, new) == []


def test_on_the_way_back_entry_points_come_before_host_names() -> None:
    """Red if callers are led to entry points that refuse them, or if the second step is held too."""
    wanted = model(to_door=False, old_names=True, tasks=3)
    [held] = found(DOOR, wanted)
    assert isinstance(held, Held)
    first: dict[str, Any] = copy.deepcopy(wanted)
    held.edit(first)
    assert first["Resources"]["Rule"] == DOOR["Resources"]["Rule"]
    assert first["Resources"]["Service"] == wanted["Resources"]["Service"]
    # The number of tasks may stay another one: a schedule can hold it.
    assert found({**first, "Metadata": {"tasks": 4}}, wanted) == []


def comparing(zone: str | None) -> dict[str, Any]:
    """Return the template of a front door, with the function that compares its days. None without it."""
    variables = {"DOOR_TIME_ZONE": zone} if zone else {}
    function = {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": variables}}}
    other = {"Type": "AWS::Lambda::Function", "Properties": {}}
    return {"Resources": {"Compare": function, "Other": other}}


@pytest.mark.parametrize(
    ("old", "new", "now", "warns"),
    [
        ("UTC", "America/Los_Angeles", "2026-11-15T00:00", True),
        ("Europe/Berlin", "UTC", "2026-11-15T00:00", True),
        ("UTC", "Europe/Berlin", "2026-11-15T00:00", False),
        ("Europe/Berlin", "Europe/Berlin", "2026-11-15T00:00", False),
        ("Europe/Berlin", "Europe/Paris", "2026-11-15T00:00", False),
        # Both are an hour before UTC today, and were not when the month began.
        ("Europe/Berlin", "Africa/Lagos", "2026-10-28T00:00", True),
        ("Africa/Lagos", "Europe/Berlin", "2026-10-28T00:00", False),
        (None, "UTC", "2026-11-15T00:00", False),
        ("UTC", None, "2026-11-15T00:00", False),
    ],
)
def test_a_time_zone_further_west_is_said(old: str | None, new: str | None, now: str, *, warns: bool) -> None:
    """Red if budgets begin anew in mid-month and nobody is told, or each change of the door is a warning."""
    templates = {"try-FrontDoor": comparing(old)}, {"try-FrontDoor": comparing(new)}
    change = PlatformChange(cast("Account", None), {}, *templates)
    found = [*moved_days(change, datetime.fromisoformat(now).replace(tzinfo=UTC))]
    assert len(found) == warns
    for each in found:
        assert isinstance(each, CheckResult)
        assert each.severity == "warning"
        assert f"from {old} to {new}" in each.message
