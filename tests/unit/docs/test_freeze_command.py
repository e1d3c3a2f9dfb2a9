"""The documented command of the freeze switch is AWS's own, and sets what the functions read."""

from __future__ import annotations

import re
import shlex

import botocore.session
from botocore import xform_name

from inference_blueprints.resources import root
from inference_contracts.operations_names import FREEZE_VALUES, MAIN_CELL, freeze_parameter

PAGE = (root() / "docs/gpu-health.md").read_text("utf-8")


def test_the_command_sets_the_parameter_to_a_value_that_it_may_have() -> None:
    (line,) = re.findall(r"^aws ssm put-parameter .*$", PAGE, re.MULTILINE)
    _, service, operation, *words = shlex.split(line)
    model = botocore.session.get_session().get_service_model(service)
    name = next(each for each in model.operation_names if xform_name(each, "-") == operation)
    members = {xform_name(each, "-") for each in model.operation_model(name).input_shape.members}
    options = {
        word.removeprefix("--"): value
        for word, value in zip(words, [*words[1:], ""], strict=True)
        if word.startswith("--")
    }
    assert options.keys() <= members
    assert options["name"] == freeze_parameter("PLATFORM", MAIN_CELL)
    assert options["value"] in FREEZE_VALUES
