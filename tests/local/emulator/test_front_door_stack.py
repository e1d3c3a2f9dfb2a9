"""The stack of the front door on the emulator: a changed budget reaches replicas, and replaces none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

import app
from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.source import shipped
from inference_contracts.door_configuration import NANO
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import key_hash
from inference_contracts.door_names import CONFIGURATION_KEY
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import deploy
from tests.runtime.batch.api.gateway import proxy_event
from tests.unit.command_run import blueprints

PLATFORM = STACK = "front-door"


def put_up(
    emulator: Emulator, folder: Path, change: Callable[[dict[str, Any]], object] | None = None
) -> None:
    """Deploy the shipped blueprint's stack on ECS, and those that it needs."""
    folder.mkdir()
    document = yaml.safe_load(shipped()[PLATFORM].read_text())
    document["spec"]["environment"]["account"] = emulator.account
    document["spec"]["cluster"] = {"ecs": {}}
    del document["spec"]["observability"]
    [shop] = [each for each in document["spec"]["teams"] if each["name"] == "shop"]
    shop["principals"] = [f"arn:aws:iam::{emulator.account}:role/Shop"]
    if change:
        change(document["spec"])
    (folder / "blueprint.yaml").write_text(yaml.safe_dump(document))
    app.synthesise(app.build_app(load_blueprint(str(folder / "blueprint.yaml")), outdir=folder / "cdk.out"))
    deploy(
        emulator,
        folder / "cdk.out",
        log_path=folder / "deploy.log",
        on_line=lambda _: None,
        on_event=lambda _: None,
        stacks=[f"{PLATFORM}-FrontDoor"],
    )


def day_budgets(emulator: Emulator, configuration: str) -> dict[str, int]:
    """Return the daily budgets of teams in the object that replicas watch, in nano-dollars."""
    bucket, _, key = configuration.removeprefix("s3://").partition("/")
    assert key == CONFIGURATION_KEY
    body = emulator.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    budgets = json.loads(body)["policy"]["budgets"]
    return {
        each["name"]: each["nano_per_day"]
        for each in budgets
        if each["scope"] == "team" and each.get("nano_per_day")
    }


def replicas(emulator: Emulator) -> dict[str, Any]:
    """Return the service of the replicas."""
    found: dict[str, Any] = emulator.client("ecs").describe_services(
        cluster=PLATFORM, services=["front-door"]
    )["services"][0]
    return found


def variables(emulator: Emulator, task_definition: str) -> dict[str, str]:
    """Return the variables of the policy process."""
    task = emulator.client("ecs").describe_task_definition(taskDefinition=task_definition)
    [policy] = [each for each in task["taskDefinition"]["containerDefinitions"] if each["name"] == "policy"]
    return {each["name"]: each["value"] for each in policy["environment"]}


def listed_states(emulator: Emulator, folder: Path) -> list[str]:
    """Return the state of each key that the command lists."""
    listed = blueprints(
        *("keys", "list", "blueprint.yaml", "--all", "-o", "json"), folder=folder, **emulator.environment()
    )
    return [each["state"] for each in json.loads(listed.out)]


def administer_keys(emulator: Emulator, folder: Path, table: str) -> None:
    """A team makes a key with the deployed API, and an administrator revokes it with the command."""
    functions = emulator.client("lambda")
    [name] = [
        each["FunctionName"]
        for each in functions.list_functions()["Functions"]
        if each["Handler"] == "key_api.handler.handle"
    ]
    event = proxy_event("POST", "/iam/v1/keys")
    event["requestContext"]["identity"]["userArn"] = f"arn:aws:sts::{emulator.account}:assumed-role/Shop/anna"
    event["body"] = json.dumps({"name": "web"})
    answer = json.loads(functions.invoke(FunctionName=name, Payload=json.dumps(event))["Payload"].read())
    assert answer["statusCode"] == 201, answer
    made = json.loads(answer["body"])
    record = KeyTable(emulator.client("dynamodb"), table).get(made["id"])
    assert record is not None
    assert (record.team, record.hashes) == ("shop", (key_hash(made["secret"]),))
    ran = blueprints(
        *("keys", "revoke", "blueprint.yaml", made["id"]), folder=folder, **emulator.environment()
    )
    assert ran.code == 0, ran.err
    assert listed_states(emulator, folder) == ["revoked"]


def test_a_change_of_a_budget_reaches_replicas_and_replaces_none(emulator: Emulator, tmp_path: Path) -> None:
    put_up(emulator, tmp_path / "first")
    first = replicas(emulator)
    settings = variables(emulator, first["taskDefinition"])
    assert day_budgets(emulator, settings["DOOR_CONFIGURATION"]) == {"research": 10 * NANO}
    tables = emulator.client("dynamodb")
    keys = tables.describe_table(TableName=settings["DOOR_KEYS_TABLE"])["Table"]
    assert [each["IndexName"] for each in keys["LocalSecondaryIndexes"]] == ["byChange"]
    ledger = tables.describe_table(TableName=settings["DOOR_LEDGER_TABLE"])["Table"]
    assert {each["AttributeName"] for each in ledger["KeySchema"]} == {"slot", "account"}
    stream = emulator.client("firehose").describe_delivery_stream(
        DeliveryStreamName=settings["DOOR_USAGE_STREAM"]
    )["DeliveryStreamDescription"]
    assert stream["DeliveryStreamStatus"] == "ACTIVE"

    administer_keys(emulator, tmp_path / "first", settings["DOOR_KEYS_TABLE"])

    def spend_more(spec: dict[str, Any]) -> None:
        """Change a budget, and whom the policy of the table of keys denies."""
        [shop] = [each for each in spec["teams"] if each["name"] == "shop"]
        shop["principals"].append(f"arn:aws:iam::{emulator.account}:role/Shop2")
        [budget] = [each for each in spec["frontDoor"]["budgets"] if each.get("team") == "research"]
        budget["usdPerDay"] = 20

    put_up(emulator, tmp_path / "second", spend_more)
    assert day_budgets(emulator, settings["DOOR_CONFIGURATION"]) == {"research": 20 * NANO}
    second = replicas(emulator)
    assert second["taskDefinition"] == first["taskDefinition"]
    assert [each["id"] for each in second["deployments"]] == [each["id"] for each in first["deployments"]]
    assert listed_states(emulator, tmp_path / "second") == ["revoked"]
