"""Batch behind a front door: where its workers send lines, what they may read, and whose ledger counts."""

from __future__ import annotations

from typing import Any

import pytest

from inference_contracts.platform_keys import SECRET_VARIABLE
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed, statements, text
from tests.templates.test_batch_stack import functions
from tests.templates.test_front_door_stack import with_front_door

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
