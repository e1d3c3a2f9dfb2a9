"""The commands that give a host of ECS back are operations of AWS, and name the attribute of GPU health."""

from __future__ import annotations

from inference_blueprints.resources import root
from inference_contracts.health_names import DRAIN_ATTRIBUTE
from tests.unit.docs.aws_command import AwsCommand
from tests.unit.docs.test_commands import commands

_PAGE = root() / "docs/gpu-health.md"


def _asked(operation: str) -> AwsCommand:
    (words,) = (words for words in commands(_PAGE) if words[:3] == ["aws", "ecs", operation])
    return AwsCommand.of(words)


def test_a_host_is_set_to_a_state_that_ecs_has() -> None:
    assert _asked("update-container-instances-state").parameters()["status"] == "ACTIVE"


def test_the_attribute_that_is_deleted_is_that_of_a_drain() -> None:
    (attribute,) = _asked("delete-attributes").parameters()["attributes"]
    assert attribute["name"] == DRAIN_ATTRIBUTE
