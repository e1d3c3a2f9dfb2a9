"""The commands that start a rotation which was given up are operations of AWS Secrets Manager."""

from __future__ import annotations

import uuid

import pytest

from inference_blueprints.resources import root
from tests.unit.docs.aws_command import AwsCommand
from tests.unit.docs.test_commands import commands

_PAGE = root() / "docs/front-door-keys.md"
#: What stands for the identifier of a version, which has at least 32 characters.
_VERSION = "VERSION"


@pytest.mark.parametrize("operation", ["describe-secret", "update-secret-version-stage", "rotate-secret"])
def test_each_is_an_operation_on_one_secret(operation: str) -> None:
    assert "SecretId" in _asked(operation).parameters()


def test_the_label_that_is_taken_away_is_that_of_a_pending_version() -> None:
    # https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html#term_version
    asked = _asked("update-secret-version-stage").parameters()
    assert asked["VersionStage"] == "AWSPENDING"
    assert "MoveToVersionId" not in asked


def _asked(operation: str) -> AwsCommand:
    (words,) = (words for words in commands(_PAGE) if words[:3] == ["aws", "secretsmanager", operation])
    return AwsCommand.of([str(uuid.UUID(int=0)) if word == _VERSION else word for word in words])
