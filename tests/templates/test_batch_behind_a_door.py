"""Batch behind a front door: where its workers send lines, what they may read, and whose ledger counts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from inference_contracts.door_names import batch_parameter
from inference_contracts.door_object import BATCH_HOST
from inference_contracts.platform_keys import SECRET_VARIABLE
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed, statements, text
from tests.templates.test_batch_stack import functions
from tests.templates.test_front_door_stack import STACK, allowed, on_ecs, policies, watched, with_front_door

LEDGER, ZONE, KEYS = "BATCH_DOOR_LEDGER_TABLE", "BATCH_DOOR_TIME_ZONE", "BATCH_DOOR_KEYS_TABLE"


def with_queue(spec: dict[str, Any]) -> None:
    """Put a queue behind the door, whose workers are pods."""
    with_front_door(spec)
    spec["teams"][0]["principals"] = ["arn:aws:iam::111122223333:role/Ads"]
    spec["frontDoor"]["timeZone"] = "Europe/Berlin"
    spec["frontDoor"]["budgets"] = [{"key": "AbCdEfGhIjKl", "usdPerDay": 5}, {"key": "*", "usdPerDay": 900}]
    spec["batch"] = {"queues": [{"name": "nightly", "model": "qwen3-8b"}]}


def with_tasks(spec: dict[str, Any]) -> None:
    """The same, with workers on Fargate and the door on ECS."""
    with_queue(spec)
    spec["cluster"] = {"ecs": {}}
    spec["batch"]["workers"] = {"ecs": {"spotPercent": 0}}


@pytest.fixture(scope="module", params=[with_queue, with_tasks], ids=["EKS", "ECS"])
def batch(request: pytest.FixtureRequest, synthesise: Synthesise) -> Templates:
    return synthesise(request.param)


def worker_environment(batch: Templates) -> str:
    """Return the variables of the worker, of its pods or of its tasks."""
    tasks = batch.properties("AWS::ECS::TaskDefinition", "Batch")
    if tasks:
        return text([each["ContainerDefinitions"] for each in tasks])
    return text(batch.charts("Batch")["qwen3-8b.batch"]["Properties"]["Values"])


def test_workers_call_the_door_with_keys_that_they_may_read(batch: Templates) -> None:
    """Red if a worker calls the model itself, or cannot read its keys."""
    found = worker_environment(batch)
    assert "https://api.models.example.com" in found
    assert SECRET_VARIABLE in found
    assert "qwen3-8b.models.example.com" not in found
    reading = [
        statement
        for kind in ("AWS::IAM::Policy", "AWS::IAM::Role")
        for policy in batch.resources(kind, "Batch")
        for statement in statements(policy)
        if "secretsmanager:GetSecretValue" in listed(statement["Action"])
    ]
    assert len(reading) == 1
    assert "*" not in text(reading[0]["Resource"])


def test_the_ledger_of_the_door_is_read_by_those_who_admit_and_show(batch: Templates) -> None:
    readers = {
        name: each["Environment"]["Variables"]
        for name, each in functions(batch).items()
        if {LEDGER, KEYS} & each.get("Environment", {"Variables": {}})["Variables"].keys()
    }
    assert readers.keys() == {
        "batch.scheduling.handlers.schedule",
        "batch.api.handler.handle",
        "batch.authorizer.handler.handle",
    }
    assert readers["batch.api.handler.handle"][ZONE] == "Europe/Berlin"
    assert KEYS in readers["batch.authorizer.handler.handle"]


def test_the_api_knows_the_keys_that_have_budgets(batch: Templates) -> None:
    """Red if a key could pass its budget by jobs: they are charged to the key of batch."""
    variables = functions(batch)["batch.authorizer.handler.handle"]["Environment"]["Variables"]
    assert batch.asset_document(variables["BATCH_CONFIGURATION"])["limitedKeys"] == ["AbCdEfGhIjKl"]


def test_the_door_is_there_before_batch(batch: Templates) -> None:
    assert "try-FrontDoor" in batch.artifacts["Batch"]["dependencies"]


def test_replicas_find_the_host_of_the_batch_api_which_is_deployed_later(batch: Templates) -> None:
    """Red if Batch writes another parameter than replicas read, or if they may read more than it."""
    parameter = batch.only("AWS::SSM::Parameter", "Batch")
    assert parameter["Name"] == batch_parameter("try")
    # Amazon API Gateway Developer Guide, "Invoke a private API": the name that leads to an endpoint.
    assert re.fullmatch(
        r"\$\{Api\w+\}-\$\{ApiExecuteApi\w+\}\.execute-api\.us-west-2\.\$\{AWS::URLSuffix\}",
        text(parameter["Value"]),
    )
    assert batch_parameter("try") in text(batch.by_stack[STACK])
    role = "Role" if batch.properties("AWS::ECS::TaskDefinition", STACK) else "IdentityRole"
    [readable] = allowed(policies(batch, role))["ssm:GetParameter"]
    assert readable.endswith(f":parameter{batch_parameter('try')}")


def test_files_and_batches_lead_from_the_door_to_the_stage_of_the_api(batch: Templates) -> None:
    """Red if OpenAI's client needs another address for files than for chat."""
    envoy = watched(batch)["envoy"]
    [cluster] = [each for each in envoy["clusters"]["resources"] if each["name"] == "batch"]
    assert cluster["type"] == "STRICT_DNS"
    [endpoint] = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert endpoint["endpoint"]["address"]["socket_address"] == {"address": BATCH_HOST, "port_value": 443}
    tls = cluster["transport_socket"]["typed_config"]
    trusted = tls["common_tls_context"]["validation_context"]
    assert trusted["trusted_ca"] == {"filename": "/etc/ssl/certs/ca-certificates.crt"}
    [name] = trusted["match_typed_subject_alt_names"]
    assert (tls["sni"], name) == (BATCH_HOST, {"san_type": "DNS", "matcher": {"exact": BATCH_HOST}})
    stage = batch.only("AWS::ApiGateway::Stage", "Batch")["StageName"]
    [manager] = envoy["listeners"]["resources"][0]["filter_chains"][0]["filters"]
    [host] = manager["typed_config"]["route_config"]["virtual_hosts"]
    routes = [each["route"] for each in host["routes"] if each.get("route", {}).get("cluster") == "batch"]
    assert [(each["prefix_rewrite"], each["host_rewrite_literal"]) for each in routes] == [
        (f"/{stage}/v1/{path}", BATCH_HOST) for path in ("batches", "files", "uploads")
    ]


def test_the_door_may_connect_to_the_endpoint_of_the_api(batch: Templates) -> None:
    [group] = [
        each
        for each in batch.properties("AWS::EC2::SecurityGroup", "Batch")
        if each["GroupDescription"] == "HTTPS from the VPC to APIs"
    ]
    [rule] = group["SecurityGroupIngress"]
    assert (rule["FromPort"], rule["ToPort"]) == (443, 443)
    assert "CidrIp" in rule  # that of the VPC, in which pods and tasks of the door are


def test_what_batch_has_spent_is_at_the_door_before_its_replicas(batch: Templates) -> None:
    """Red if a door that comes in mid-month fills its store before the month is carried over.

    ECS and the function of charts start replicas when CloudFormation creates these resources, and
    `DependsOn` is the order.
    """
    [(name, carried)] = [
        (name, each)
        for name, each in batch.by_stack["FrontDoor"]["Resources"].items()
        if each["Type"] == "Custom::CarriedSpending"
    ]
    assert carried["Properties"]["TimeZone"] == "Europe/Berlin"
    assert carried["Properties"]["Teams"] == ["ads"]
    replicas = [
        each
        for kind in ("AWS::ECS::Service", "Custom::AWSCDK-EKS-HelmChart")
        for each in batch.resources(kind, "FrontDoor")
    ]
    assert replicas
    assert all(name in each["DependsOn"] for each in replicas)
    # The permissions of its function are there before it, and the tables.
    roles = [each for each in carried["DependsOn"] if each.startswith("CarriedSpendingCarryOverRole")]
    assert len(roles) == 2  # role and policy
    assert "try-Data" in batch.artifacts["FrontDoor"]["dependencies"]


def test_it_may_read_sums_and_admissions_and_write_checkpoints(batch: Templates) -> None:
    """Red if it may read inputs' records or keys, or read, change or delete more of the ledger."""
    rights = {
        action: each
        for each in policies(batch, "CarriedSpendingCarryOverRole")
        for action in listed(each["Action"])
        if not action.startswith(("logs:", "kms:"))
    }
    assert rights.keys() == {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem"}
    assert rights["dynamodb:GetItem"]["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["spending#*", "admission#*"]}
    }
    assert text(rights["dynamodb:Query"]["Resource"]).endswith("/index/byState")
    assert "DoorLedgerTableName" in text(rights["dynamodb:PutItem"]["Resource"])
    assert "JobTableName" in text(rights["dynamodb:GetItem"]["Resource"])


@pytest.mark.parametrize("change", [with_front_door, on_ecs], ids=["EKS", "ECS"])
def test_without_batch_nothing_is_carried_over(
    change: Callable[[dict[str, Any]], None], synthesise: Synthesise
) -> None:
    assert "CarriedSpending" not in str(synthesise(change).by_stack["FrontDoor"])
