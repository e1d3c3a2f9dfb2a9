"""The page on keys: its commands run in an emulated account, its programs do what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from openai import OpenAI

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.resources import root
from inference_contracts.door_key_table import AUDIT_BUCKET_OUTPUT, TABLE_OUTPUT, KeyTable
from inference_contracts.door_names import USAGE_BUCKET_OUTPUT
from tests.runtime.front_door.keys import key_tables as tables
from tests.unit.cli.test_keys_commands import FakeSts
from tests.unit.command_run import blueprints
from tests.unit.docs.test_commands import commands, fences, kind
from tests.unit.operate.fake_cloudformation import FakeCloudFormation

PAGE = root() / "docs" / "front-door-keys.md"
PROGRAMS = [body for language, body in fences(PAGE) if language == "python"]


@pytest.fixture
def key_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyTable]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", tables.REGION)
    stacks = FakeCloudFormation()
    stacks.add("front-door-FrontDoor", "front-door")
    stacks.outputs["front-door-FrontDoor"] = {
        TABLE_OUTPUT: tables.TABLE,
        AUDIT_BUCKET_OUTPUT: tables.BUCKET,
        USAGE_BUCKET_OUTPUT: tables.BUCKET,
    }
    with mock_aws():
        found: dict[str, Any] = {each: boto3.client(each) for each in ("dynamodb", "s3")}
        found["dynamodb"].create_table(**tables.TABLE_PROPERTIES)
        found["s3"].create_bucket(
            Bucket=tables.BUCKET, CreateBucketConfiguration={"LocationConstraint": tables.REGION}
        )
        found |= {"cloudformation": stacks, "sts": FakeSts()}
        monkeypatch.setattr(Account, "client", lambda _, service: found[service])
        yield KeyTable(found["dynamodb"], tables.TABLE)


def test_the_commands_work_one_after_the_other(key_table: KeyTable, tmp_path: Path) -> None:
    secrets: list[str] = []
    for words in commands(PAGE):
        if words[:2] not in (["blueprints", "keys"], ["blueprints", "usage"]):
            continue
        key = secrets[0].split("-")[1] if secrets else ""
        ran = blueprints(*[key if word == "KEY" else word for word in words[1:]], folder=tmp_path)
        assert ran.code == 0, f"{words}\n{ran.err}"
        if words[2] in {"create", "rotate"}:
            secrets.append(ran.out.strip())
    assert len(set(secrets)) == 4
    scoped, first = sorted(key_table.all(), key=lambda each: each.name)
    assert (first.name, first.revoked is None, len(first.hashes)) == ("search in production", False, 1)
    assert (scoped.project, scoped.models) == ("catalogue", ("qwen/qwen3-8b",))


def test_aws_has_the_operations() -> None:
    named = [words[2].replace("-", "_") for words in commands(PAGE) if kind(words) == "federation"]
    iam = boto3.Session("none", "none").client("iam", region_name="us-west-2")
    assert [hasattr(iam, name) for name in named] == [True, True]


def test_a_token_is_fetched_again_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that expires while it is used, or STS that is asked for each request."""
    [program] = [each for each in PROGRAMS if "class StsToken" in each]
    sts: Any = boto3.Session("none", "none").client("sts", region_name="us-west-2")
    now = [1000.0]
    with Stubber(sts) as stub:
        for number in range(2):
            asked = {
                "Audience": ["https://api.models.example.com"],
                "SigningAlgorithm": "ES384",
                "DurationSeconds": 900,
            }
            stub.add_response("get_web_identity_token", {"WebIdentityToken": f"token-{number}"}, asked)
        monkeypatch.setattr(boto3, "client", lambda *_, **__: sts)
        monkeypatch.setattr("time.monotonic", lambda: now[0])
        found: dict[str, Any] = {}
        exec(program, found)  # noqa: S102 - the page's
        token = found["client"]._api_key_provider or found["StsToken"]
        assert [token(), token()] == ["token-0", "token-0"]
        now[0] += 601
        assert token() == "token-1"
        stub.assert_no_pending_responses()
    assert isinstance(found["client"], OpenAI)


def test_requests_to_the_api_are_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    [program] = [each for each in PROGRAMS if "def ask" in each]
    for name, value in {
        "ACCESS_KEY_ID": "AKID",
        "SECRET_ACCESS_KEY": "none",
        "DEFAULT_REGION": "us-west-2",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    sent: list[Any] = []

    class Opened:
        def __enter__(self) -> Opened:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def read(self) -> bytes:
            return b'{"id": "0"}'

    def urlopen(request: Any) -> Opened:
        sent.append(request)
        return Opened()

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    found: dict[str, Any] = {}
    exec(program, found)  # noqa: S102 - the page's
    assert found["ask"]("https://api.example.com/v1", "POST", "/keys", {"name": "web"}) == {"id": "0"}
    [request] = sent
    assert (request.get_method(), request.full_url) == ("POST", "https://api.example.com/v1/keys")
    assert re.search(r"Credential=AKID/\d{8}/us-west-2/execute-api/", request.headers["Authorization"])
    assert request.data == b'{"name": "web"}'


def test_the_first_program_is_a_client() -> None:
    found: dict[str, Any] = {}
    exec(PROGRAMS[0], found)  # noqa: S102 - the page's
    assert isinstance(found["client"], OpenAI)
