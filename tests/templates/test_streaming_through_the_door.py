"""Streaming jobs behind a front door: what they call, which key they may read, and when they are deployed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference_contracts.streaming_job import JobDoor, StreamingJobConfiguration
from tests.templates.checks.lint import lint
from tests.templates.checks.refused import refused_by_aws
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed, statements, text
from tests.templates.test_front_door_stack import with_front_door
from tests.templates.test_streaming_stack import STACK, documents, streaming

KEYS = "PlatformKeys"


def behind_a_door(spec: dict[str, Any]) -> None:
    """Give the base document a front door, and two streaming jobs of two teams."""
    with_front_door(spec)
    streaming(spec)


def on_ecs(spec: dict[str, Any]) -> None:
    behind_a_door(spec)
    spec["cluster"] = {"ecs": {}}


@pytest.fixture(scope="module")
def templates(synthesise: Synthesise) -> Templates:
    return synthesise(behind_a_door)


def secret_of(templates: Templates, job: str) -> str:
    """Return how the stack of jobs names the secret of a job."""
    resources: dict[str, Any] = templates.by_stack[KEYS]["Resources"]
    [name] = [
        name
        for name, each in resources.items()
        if each["Type"] == "AWS::SecretsManager::Secret" and job in name
    ]
    return name


def configuration(templates: Templates, job: str) -> StreamingJobConfiguration:
    [document] = documents(templates, job)
    return StreamingJobConfiguration.from_json(document)


def readers(templates: Templates, job: str) -> dict[str, list[dict[str, Any]]]:
    """Return the statements about Secrets Manager and its KMS key, by the words of their roles."""
    found: dict[str, list[dict[str, Any]]] = {}
    for policy in templates.resources("AWS::IAM::Policy", STACK):
        role = json.dumps(policy["Properties"]["Roles"])
        for statement in statements(policy):
            about_keys = "secretsmanager" in json.dumps([statement["Action"], statement.get("Condition")])
            if about_keys and f"Job{job}" in role:
                found.setdefault(role, []).append(statement)
    return found


@pytest.mark.parametrize(("job", "team"), [("shopper", "ads"), ("basket", "shop")])
def test_a_job_calls_the_door_with_the_key_of_its_team(templates: Templates, job: str, team: str) -> None:
    endpoint = configuration(templates, job).endpoint
    assert (endpoint.url, endpoint.authentication) == ("https://api.models.example.com", "bearer")
    assert isinstance(endpoint.door, JobDoor)
    assert (endpoint.door.model, endpoint.door.team) == (f"streaming:{job}", team)
    assert secret_of(templates, job) in endpoint.door.secret
    # Records keep the model's own name.
    assert configuration(templates, job).request.model == "qwen3-8b"


@pytest.mark.parametrize(("job", "other"), [("shopper", "basket"), ("basket", "shopper")])
def test_job_and_redrive_read_their_own_key_alone(templates: Templates, job: str, other: str) -> None:
    found = readers(templates, job)
    assert sorted("Redrive" in role for role in found) == [False, True]
    own, foreign = secret_of(templates, job), secret_of(templates, other)
    for each in found.values():
        assert sorted(action for one in each for action in listed(one["Action"])) == [
            "kms:Decrypt",
            "secretsmanager:GetSecretValue",
        ]
        for statement in each:
            if "kms:Decrypt" in listed(statement["Action"]):
                equal = statement["Condition"]["StringEquals"]
                assert text(equal["kms:ViaService"]).startswith("secretsmanager.")
                named = text(equal["kms:EncryptionContext:SecretARN"])
            else:
                [named] = [text(one) for one in listed(statement["Resource"])]
            assert own in named
            assert foreign not in named


@pytest.mark.parametrize("change", [behind_a_door, on_ecs])
def test_jobs_start_after_the_door_and_their_keys(synthesise: Synthesise, change: Any) -> None:
    """A job that starts before the door takes requests would wait, and its deployment with it."""
    found = synthesise(change)
    earlier = {each.split("-", 1)[1] for each in found.artifacts[STACK]["dependencies"] if "-" in each}
    assert {"FrontDoor", KEYS} <= earlier


def test_a_job_reaches_the_load_balancer_and_secrets_manager_by_https(templates: Templates) -> None:
    """Managed Flink has only the network of its subnets: no public address, no route but those of the VPC.

    "Configure Managed Service for Apache Flink to access resources in an Amazon VPC" in its developer guide.
    The library's VPC has an endpoint of Secrets Manager, whose security group admits the VPC.
    """
    [group] = [
        each
        for each in templates.properties("AWS::EC2::SecurityGroup", STACK)
        if each["GroupDescription"] == "Streaming jobs"
    ]
    ports = {(each["CidrIp"], each["FromPort"]) for each in group["SecurityGroupEgress"]}
    assert ("0.0.0.0/0", 443) in ports
    assert not any(port == 80 for _, port in ports)
    rules = templates.properties("AWS::EC2::SecurityGroupIngress", STACK)
    assert [each["FromPort"] for each in rules if each["Description"] == "Streaming jobs"] == [443]
    endpoints = [
        text(each["ServiceName"]) for each in templates.properties("AWS::EC2::VPCEndpoint", "Network")
    ]
    assert any(each.endswith(".secretsmanager") for each in endpoints)


def test_the_templates_are_accepted(templates: Templates) -> None:
    assert lint(templates, "us-west-2") == []
    assert refused_by_aws(templates) == []
