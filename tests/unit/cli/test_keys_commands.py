"""The commands about API keys, with emulated AWS: what they print, what they keep, and what they refuse."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from inference_blueprints.operate.aws.account import Account
from inference_contracts.door_key_table import AUDIT_BUCKET_OUTPUT, TABLE_OUTPUT
from inference_contracts.door_keys import key_hash, key_id
from tests.runtime.front_door.keys import key_tables as tables
from tests.unit.cli.batch_commands import Run
from tests.unit.command_run import blueprints
from tests.unit.operate.fake_cloudformation import FakeCloudFormation

PLAIN = """\
apiVersion: inference-blueprints/v1alpha1
kind: Blueprint
metadata: {name: chat}
spec:
  environment: {region: us-west-2}
  network:
    certificateArn: arn:aws:acm:us-west-2:123456789012:certificate/0a1b2c3d-0000-4000-8000-000000000000
    domain: models.example.com
  cluster: {eks: {version: "1.35"}}
  pools:
  - {name: l40s, instanceTypes: [g6e.2xlarge], nodes: {max: 8}}
  models:
  - name: qwen3-8b
    weights: {huggingFace: Qwen/Qwen3-8B}
    engine: {vllm: {}}
    rates: {usdPerMillionInputTokens: 0.05, usdPerMillionOutputTokens: 0.4}
    workload: {inputTokens: 2000, outputTokens: 100, peakRequestsPerSecond: 6}
    deployments:
    - {name: main, aggregated: {pool: l40s, replicas: 1, tensorParallelSize: 1}}
  teams:
  - {name: search, principals: ["arn:aws:iam::123456789012:role/Search"], monthlyBudgetUsd: 1000}
  - {name: adverts, principals: ["arn:aws:iam::123456789012:role/Adverts"], monthlyBudgetUsd: 200}
"""
DOOR = PLAIN + "  frontDoor: {identity: {apiKeys: {maxDays: 60, rotationHours: 12}}}\n"
CREATE = ("keys", "create", "door.yaml", "--team", "search", "--name", "ci")


class FakeSts:
    """STS, which tells who has the credentials."""

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": tables.ACCOUNT, "Arn": tables.ADMIN}


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The clients of an account with the table and the bucket of a deployed front door."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    stacks = FakeCloudFormation()
    stacks.add("chat-FrontDoor", "chat")
    stacks.outputs["chat-FrontDoor"] = {TABLE_OUTPUT: tables.TABLE, AUDIT_BUCKET_OUTPUT: tables.BUCKET}
    with mock_aws():
        found = {each: boto3.client(each, region_name=tables.REGION) for each in ("dynamodb", "s3")}
        found["dynamodb"].create_table(**tables.TABLE_PROPERTIES)
        found["s3"].create_bucket(
            Bucket=tables.BUCKET, CreateBucketConfiguration={"LocationConstraint": tables.REGION}
        )
        found |= {"cloudformation": stacks, "sts": FakeSts()}
        monkeypatch.setattr(Account, "client", lambda _, service: found[service])
        yield found


@pytest.fixture
def run(tmp_path: Path, clients: dict[str, Any]) -> Run:
    (tmp_path / "door.yaml").write_text(DOOR, encoding="utf-8")
    (tmp_path / "plain.yaml").write_text(PLAIN, encoding="utf-8")
    return partial(blueprints, folder=tmp_path)


def test_only_the_secret_is_on_standard_output(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    # `KEY=$(blueprints keys create …)` must work, and no log may have the secret.
    caplog.set_level(logging.DEBUG)
    ran = run(*CREATE, "--model", "qwen3-8b", "--days", "30")
    assert ran.code == 0, ran.err
    secret = ran.out.removesuffix("\n")
    assert key_id(secret)
    assert secret not in ran.err + caplog.text
    assert "this is the only time that the secret is shown" in ran.err


def test_the_document_has_the_key_and_no_hash(run: Run, clients: dict[str, Any]) -> None:
    ran = run(*CREATE, "--project", "web", "--usd-per-month", "12.5", "--requests-at-once", "4", "-o", "json")
    document = json.loads(ran.out)
    digits = key_hash(document.pop("secret"))
    assert digits[:16] not in ran.out
    assert digits in json.dumps(clients["dynamodb"].scan(TableName=tables.TABLE)["Items"])
    assert document["budget"] == {
        "usdPerDay": None,
        "usdPerMonth": 12.5,
        "requestsPerMinute": None,
        "tokensPerMinute": None,
        "requestsAtOnce": 4,
    }
    assert (document["project"], document["createdBy"], document["state"]) == ("web", tables.ADMIN, "valid")
    listed = json.loads(run("keys", "list", "door.yaml", "-o", "json").out)
    assert listed == [document]


def test_a_key_is_rotated_and_revoked(run: Run) -> None:
    made = json.loads(run(*CREATE, "-o", "json").out)
    rotated = run("keys", "rotate", "door.yaml", made["id"])
    assert key_id(rotated.out.strip()) == made["id"]
    assert rotated.out.strip() != made["secret"]
    assert "its old secret is valid until" in rotated.err
    again = run("keys", "rotate", "door.yaml", made["id"])
    assert (again.code, again.out) == (1, "")
    assert "a key has two secrets at most" in again.err
    assert run("keys", "rotate", "door.yaml", made["id"], "--again").code == 0
    assert run("keys", "rotate", "door.yaml", made["id"], "--overlap-hours", "0").code == 0
    for _ in range(2):
        revoked = run("keys", "revoke", "door.yaml", made["id"])
        assert (revoked.code, revoked.out) == (0, "")
        assert "all replicas refuse it within 5 seconds" in revoked.err
    assert run("keys", "list", "door.yaml").out == "there are no keys\n"
    assert "revoked" in run("keys", "list", "door.yaml", "--all").out


def test_a_list_is_a_table_of_one_team(run: Run) -> None:
    run(*CREATE)
    run("keys", "create", "door.yaml", "--team", "adverts", "--name", "bidding")
    shown = run("keys", "list", "door.yaml", "--team", "adverts", COLUMNS="160").out
    assert "bidding" in shown
    assert "search" not in shown


def test_a_wrong_command_names_all_faults_and_leaves_nothing(run: Run, clients: dict[str, Any]) -> None:
    ran = run(
        *("keys", "create", "door.yaml", "--team", "sales", "--name", "", "--model", "gpt-5"),
        *("--days", "61", "--usd-per-day", "0", "-o", "json"),
    )
    assert ran.code == 1
    messages = [each["message"] for each in json.loads(ran.out)["errors"]]
    assert sorted(each.partition(":")[0] for each in messages) == [
        *("days", "dollars per day", "model", "name", "team"),
    ]
    assert clients["dynamodb"].scan(TableName=tables.TABLE)["Items"] == []
    assert clients["s3"].list_objects_v2(Bucket=tables.BUCKET)["KeyCount"] == 0


@pytest.mark.parametrize("words", ["rotate", "revoke"])
def test_an_unknown_key_is_an_error(run: Run, words: str) -> None:
    ran = run("keys", words, "door.yaml", "000000000000")
    assert (ran.code, ran.out) == (1, "")
    assert "key 000000000000: there is no such key" in ran.err


def test_a_command_that_is_run_again_says_which_key_it_made(run: Run) -> None:
    made = json.loads(run(*CREATE, "-o", "json").out)
    ran = run(*CREATE)
    assert (ran.code, ran.out) == (1, "")
    assert f"search has the key {made['id']} of this name since" in ran.err


def test_a_blueprint_without_keys_and_a_platform_without_door_say_so(
    run: Run, clients: dict[str, Any]
) -> None:
    assert "add spec.frontDoor with identity.apiKeys" in run("keys", "list", "plain.yaml").err
    clients["cloudformation"].delete("chat-FrontDoor")
    assert "is not deployed in us-west-2; run `blueprints deploy` first" in run(*CREATE).err


def test_an_error_of_aws_is_one_line(run: Run, clients: dict[str, Any]) -> None:
    clients["s3"].delete_bucket(Bucket=tables.BUCKET)
    ran = run(*CREATE)
    assert (ran.code, ran.out) == (1, "")
    assert len(ran.err.splitlines()) == 1
    assert "NoSuchBucket" in ran.err
