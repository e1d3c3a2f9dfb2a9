"""The commands that give a host of ECS back are operations of AWS, and name the attribute of GPU health."""

from __future__ import annotations

from typing import Any

import botocore.session
from botocore.validate import ParamValidator

from inference_blueprints.contracts.health_names import DRAIN_ATTRIBUTE
from inference_blueprints.resources import root
from tests.unit.docs.aws_command import AwsCommand
from tests.unit.docs.test_commands import commands

_PAGE = root() / "docs/gpu-health.md"


def _asked(operation: str) -> AwsCommand:
    (words,) = (words for words in commands(_PAGE) if words[:3] == ["aws", "ecs", operation])
    return AwsCommand.of(words)


def test_a_host_is_set_to_a_state_that_ecs_has() -> None:
    assert _asked("update-container-instances-state").parameters()["status"] == "ACTIVE"


def test_the_attribute_that_is_deleted_is_that_of_a_drain() -> None:
    command = _asked("delete-attributes")
    fields: dict[str, Any] = dict(
        part.split("=") for value in command.options["attributes"] for part in value.split(",")
    )
    assert fields["name"] == DRAIN_ATTRIBUTE
    model = botocore.session.get_session().get_service_model("ecs").operation_model("DeleteAttributes")
    asked = {
        name: [fields] if name == "attributes" else values[0] for name, values in command.options.items()
    }
    report = ParamValidator().validate(asked, model.input_shape)
    assert not report.has_errors(), report.generate_report()
