"""The keys of the platform's own programs in AWS: who rotates them, and who reads them."""

from __future__ import annotations

from typing import Any

import pytest

from inference_contracts.platform_keys import OWNER_TAG, PLATFORM_TEAM
from tests.templates.checks.lint import lint
from tests.templates.checks.refused import refused_by_aws
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed
from tests.templates.test_front_door_stack import with_own_keys

STACK = "PlatformKeys"
_SCHEDULE = "AWS::SecretsManager::RotationSchedule"


def with_callers(spec: dict[str, Any]) -> None:
    """Add a queue and a canary behind a front door."""
    with_own_keys(spec)
    spec["batch"] = {"queues": [{"name": "nightly", "model": "qwen3-8b"}]}
    spec["observability"] = {"canary": {}}


@pytest.fixture(scope="module")
def templates(synthesise: Synthesise) -> Templates:
    return synthesise(with_callers)


def test_a_door_without_callers_of_the_platform_has_no_keys_of_its_own(synthesise: Synthesise) -> None:
    assert STACK not in synthesise(with_own_keys).by_stack


def test_each_program_has_a_secret_that_one_function_rotates(templates: Templates) -> None:
    """Red if a secret is rotated by nobody, or a change of who has keys starts no rotation."""
    secrets = templates.properties("AWS::SecretsManager::Secret", STACK)
    tags = [{each["Key"]: each["Value"] for each in secret["Tags"]}[OWNER_TAG] for secret in secrets]
    assert tags == ["batch", "canary"]
    assert all("KmsKeyId" in each for each in secrets)
    schedules = templates.properties(_SCHEDULE, STACK)
    assert {each["RotationRules"]["ScheduleExpression"] for each in schedules} == {"rate(30 days)"}
    [version] = {each["RotationLambdaARN"]["Ref"] for each in schedules}
    assert templates.by_stack[STACK]["Resources"][version]["Type"] == "AWS::Lambda::Version"
    [permission] = templates.properties("AWS::Lambda::Permission", STACK)
    assert permission["Principal"] == "secretsmanager.amazonaws.com"
    assert permission["SourceAccount"]


def test_the_function_may_put_these_secrets_and_keys_and_nothing_else(templates: Templates) -> None:
    """Red if it could read other secrets, delete keys, or give itself random passwords."""
    [policy] = templates.properties("AWS::IAM::Policy", STACK)
    found: dict[str, set[str]] = {}
    for statement in policy["PolicyDocument"]["Statement"]:
        assert "*" not in listed(statement["Resource"])
        for action in listed(statement["Action"]):
            found.setdefault(action.split(":")[0], set()).add(action.split(":")[1])
    assert found["secretsmanager"] == {
        "DescribeSecret",
        "GetSecretValue",
        "PutSecretValue",
        "UpdateSecretVersionStage",
    }
    assert "DeleteItem" not in found["dynamodb"]
    assert found["s3"] == {"PutObject"}


def test_aws_takes_the_templates(templates: Templates) -> None:
    assert lint(templates, "us-west-2") == []
    assert refused_by_aws(templates) == []


def test_who_has_keys_is_a_part_of_the_code(templates: Templates) -> None:
    """Red if a new team changes no code: then there is no new version, and its key comes a month later."""
    [batch, canary] = templates.asset_document("key_owners.json")["owners"]
    assert (batch["caller"], batch["teams"], batch["models"]) == ("batch", ["ads"], ["batch:qwen3-8b"])
    assert (canary["caller"], canary["teams"]) == ("canary", [PLATFORM_TEAM])
