"""The commands that start a rotation which was given up are operations of AWS Secrets Manager."""

from __future__ import annotations

import pytest

from inference_blueprints.resources import root
from inference_contracts.platform_keys import OWNER_TAG
from tests.unit.docs.aws_command import AwsCommand
from tests.unit.docs.test_commands import commands

_PAGE = root() / "docs/runbooks/door-platform-keys-late.md"


@pytest.mark.parametrize("operation", ["describe-secret", "update-secret-version-stage", "rotate-secret"])
def test_each_is_an_operation_on_one_secret(operation: str) -> None:
    assert "SecretId" in _asked(operation).parameters()


def test_the_label_that_is_taken_away_is_that_of_a_pending_version() -> None:
    # https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html#term_version
    asked = _asked("update-secret-version-stage").parameters()
    assert asked["VersionStage"] == "AWSPENDING"
    assert "MoveToVersionId" not in asked


def test_the_tag_that_is_listed_is_that_of_the_secrets() -> None:
    (listed,) = _asked("list-secrets").parameters()["Filters"]
    assert listed == {"Key": "tag-key", "Values": [OWNER_TAG]}


def _asked(operation: str) -> AwsCommand:
    (words,) = (words for words in commands(_PAGE) if words[:3] == ["aws", "secretsmanager", operation])
    return AwsCommand.of(words)
