"""The commands that start a rotation which was given up are operations of AWS, with the label of a pending version."""

from __future__ import annotations

import pytest

from inference_blueprints.resources import root
from tests.unit.docs.aws_command import AwsCommand
from tests.unit.docs.test_commands import commands

_PAGE = root() / "docs/front-door-keys.md"
#: https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html#term_version
_PENDING = "AWSPENDING"


@pytest.mark.parametrize("operation", ["describe-secret", "update-secret-version-stage", "rotate-secret"])
def test_each_is_an_operation_on_one_secret(operation: str) -> None:
    assert _asked(operation).parameters()["secret_id"] == "SECRET"


def test_the_label_that_is_taken_away_is_that_of_a_pending_version() -> None:
    assert _asked("update-secret-version-stage").parameters()["version_stage"] == _PENDING


def _asked(operation: str) -> AwsCommand:
    (words,) = (words for words in commands(_PAGE) if words[:3] == ["aws", "secretsmanager", operation])
    return AwsCommand.of(words)
