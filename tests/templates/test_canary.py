"""The function that asks every model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inference_constructs.code_staging import stage_packages
from inference_contracts.platform_keys import SECRET_VARIABLE
from inference_runtime import runtime_directory
from tests.templates.checks.lint import lint
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, statements, text
from tests.templates.test_front_door_stack import with_front_door


@pytest.fixture(scope="module", params=[{"eks": {"version": "1.35"}}, {"ecs": {}}], ids=["eks", "ecs"])
def templates(request: pytest.FixtureRequest, synthesise: Synthesise) -> Templates:
    canary = {"canary": {"everyMinutes": 10}}
    return synthesise(lambda spec: spec.update(cluster=request.param, observability=canary))


def of_canary(templates: Templates, kind: str) -> dict[str, Any]:
    """Return the properties of the one resource of this kind."""
    (found,) = templates.properties(kind, "Observability")
    return found


def test_without_the_key_there_is_none(synthesise: Synthesise) -> None:
    templates = synthesise(lambda spec: spec.update(observability={}))
    assert not list(templates.properties("AWS::Lambda::Function", "Observability"))


def test_it_asks_every_model_by_its_address(templates: Templates) -> None:
    variables = of_canary(templates, "AWS::Lambda::Function")["Environment"]["Variables"]
    assert variables["CANARY_PLATFORM"] == "try"
    (model,) = json.loads(variables["CANARY_MODELS"])
    assert (model["name"], model["task"]) == ("qwen3-8b", "generate")
    assert model["url"].startswith("http://qwen3-8b.")
    assert model["url"].endswith("/v1")


def test_one_round_runs_at_a_time_on_the_schedule(templates: Templates) -> None:
    assert of_canary(templates, "AWS::Lambda::Function")["ReservedConcurrentExecutions"] == 1
    rule = of_canary(templates, "AWS::Events::Rule")
    assert rule["ScheduleExpression"] == "rate(10 minutes)"
    assert rule["Targets"][0]["RetryPolicy"] == {"MaximumRetryAttempts": 0}


def test_it_writes_its_log_and_connects_to_the_vpc_and_may_do_nothing_else(templates: Templates) -> None:
    (policy,) = templates.resources("AWS::IAM::Policy", "Observability")
    actions = {action for statement in statements(policy) for action in listed_actions(statement)}
    assert {action.split(":")[0] for action in actions} == {"ec2", "logs"}
    assert all("NetworkInterface" in a or "Subnets" in a or "PrivateIp" in a for a in actions if "ec2:" in a)
    (log,) = [s for s in statements(policy) if listed_actions(s)[0].startswith("logs:")]
    assert "*" not in json.dumps(log["Resource"]).replace(":*", "")


def listed_actions(statement: dict[str, Any]) -> list[str]:
    actions = statement["Action"]
    return [actions] if isinstance(actions, str) else actions


def test_it_reaches_the_load_balancer_alone(templates: Templates) -> None:
    # With an egress rule of its own, a group has no other (CloudFormation, AWS::EC2::SecurityGroupEgress).
    assert "SecurityGroupEgress" not in of_canary(templates, "AWS::EC2::SecurityGroup")
    out = of_canary(templates, "AWS::EC2::SecurityGroupEgress")
    into = of_canary(templates, "AWS::EC2::SecurityGroupIngress")
    assert out["ToPort"] == into["ToPort"] == 80


def behind_a_door(spec: dict[str, Any]) -> None:
    with_front_door(spec)
    spec["observability"] = {"canary": {}}


def behind_a_door_on_ecs(spec: dict[str, Any]) -> None:
    behind_a_door(spec)
    spec["cluster"] = {"ecs": {}}


@pytest.mark.parametrize("change", [behind_a_door, behind_a_door_on_ecs], ids=["eks", "ecs"])
def test_behind_a_front_door_it_asks_there_with_its_own_key(synthesise: Synthesise, change: Any) -> None:
    """Red if it gets around the door, asks for a model of callers, or could read the keys of others."""
    templates = synthesise(change)
    variables = of_canary(templates, "AWS::Lambda::Function")["Environment"]["Variables"]
    assert json.loads(variables["CANARY_MODELS"]) == [
        {
            "name": "qwen3-8b",
            "url": "https://api.models.example.com/v1",
            "task": "generate",
            "asked": "canary:qwen3-8b",
        }
    ]
    secret = text(variables[SECRET_VARIABLE])
    role = [
        statement
        for resource in templates.resources("AWS::IAM::Policy", "Observability")
        for statement in statements(resource)
        if "secretsmanager:GetSecretValue" in listed_actions(statement)
        and text(statement["Resource"]) == secret
    ]
    assert len(role) == 1
    assert any("PlatformKeys" in each for each in templates.artifacts["Observability"]["dependencies"])
    assert lint(templates, "us-west-2") == []
    # The door knows this name, and leads it to the deployments of the model.
    [file] = (templates.directory / "watched").glob("*.json")
    names = [each["name"] for each in json.loads(file.read_text("utf-8"))["policy"]["models"]]
    assert "canary:qwen3-8b" in names


@pytest.mark.thorough
def test_its_handler_starts_from_the_staged_code_and_the_standard_library(
    templates: Templates, tmp_path: Path
) -> None:
    stage_packages((runtime_directory() / "canary",), tmp_path)
    module, _, function = of_canary(templates, "AWS::Lambda::Function")["Handler"].rpartition(".")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from {module} import {function}"
    # Isolated, and without installed packages.
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
