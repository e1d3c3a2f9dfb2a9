"""The batch API with emulated AWS, and commands that use it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import boto3
import pytest
import urllib3

from batch.api.handler import build
from batch.authorizer.caller_identity import CallerIdentity
from batch.authorizer.handler import Authorizer
from batch.jobs.settings import BatchPlatform, read_platform
from inference_blueprints.operate.aws.account import Account
from inference_contracts.batch_names import API_OUTPUT, token_audience
from tests.runtime.batch import resources
from tests.runtime.batch.api.emulator import Emulator
from tests.runtime.batch.api.gateway import Gateway
from tests.runtime.batch.authorizer.sts import Sts
from tests.unit.cli.batch_commands import BATCH, BLUEPRINT, NOBODY, REQUEST, SEARCH, Run
from tests.unit.command_run import blueprints
from tests.unit.operate.fake_cloudformation import FakeCloudFormation


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture
def platform(emulator: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BatchPlatform:
    for name, value in {
        "AWS_ENDPOINT_URL": emulator.endpoint,
        "AWS_ACCESS_KEY_ID": SEARCH[0],
        "AWS_SECRET_ACCESS_KEY": SEARCH[1],
        "AWS_DEFAULT_REGION": resources.REGION,
        "COLUMNS": "120",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    urllib3.request("POST", f"{emulator.endpoint}/moto-api/reset")
    return read_platform(resources.create(tmp_path))


class FakeSts:
    """STS, which tells the account of the credentials."""

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": resources.ACCOUNT}


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> FakeCloudFormation:
    fake = FakeCloudFormation()
    clients = {"cloudformation": fake, "sts": FakeSts()}
    monkeypatch.setattr(Account, "client", lambda _, service: clients[service])
    return fake


@pytest.fixture
def gateway(platform: BatchPlatform, stacks: FakeCloudFormation) -> Iterator[Gateway]:
    """The deployed API: its address is in the stack's outputs, and its authorizer checks tokens."""
    with Sts() as sts:
        sts.knows(*SEARCH, resources.SEARCH)
        sts.knows(*NOBODY, resources.NOBODY)
        identity = CallerIdentity(
            urllib3.PoolManager(),
            region=resources.REGION,
            audience=token_audience(resources.ACCOUNT, "chat"),
            endpoint=sts.endpoint,
        )
        authorizer = Authorizer(
            platform.configuration, identity, region=resources.REGION, remembered_seconds=300
        )
        with Gateway(build(platform).resolve, authorizer.decide) as running:
            running.knows(*SEARCH, resources.SEARCH)
            running.knows(*NOBODY, resources.NOBODY)
            stacks.add("chat-Batch", "chat")
            stacks.outputs["chat-Batch"] = {API_OUTPUT: f"{running.address}/v1"}
            yield running


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: BatchPlatform) -> Run:
    """Runs a command in a folder with a blueprint with batch, one without batch, and requests."""
    monkeypatch.chdir(tmp_path)
    Path("chat.yaml").write_text(BLUEPRINT + BATCH, encoding="utf-8")
    Path("plain.yaml").write_text(BLUEPRINT, encoding="utf-8")
    Path("in.jsonl").write_bytes(REQUEST)
    return partial(blueprints, folder=tmp_path)
