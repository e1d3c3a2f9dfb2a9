"""The API on a loopback port, with emulated AWS on another port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
import urllib3
from openai import OpenAI

from batch.api.handler import build
from batch.jobs.settings import BatchPlatform, read_platform
from tests.runtime.batch import resources
from tests.runtime.batch.api.emulator import Emulator
from tests.runtime.batch.api.gateway import Gateway
from tests.runtime.batch.api.requesting import Api


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture
def environment(emulator: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """Emulated AWS with a new platform."""
    for name, value in {
        "AWS_ENDPOINT_URL": emulator.endpoint,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": resources.REGION,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    urllib3.request("POST", f"{emulator.endpoint}/moto-api/reset")
    emulator.seen.clear()
    return resources.create(tmp_path)


@pytest.fixture
def platform(environment: dict[str, str]) -> BatchPlatform:
    return read_platform(environment)


@pytest.fixture
def gateway(platform: BatchPlatform) -> Iterator[Gateway]:
    with Gateway(build(platform).resolve) as running:
        yield running


@pytest.fixture
def client_of(gateway: Gateway) -> Iterator[Callable[[str], OpenAI]]:
    """The official, unchanged client for a caller's ARN."""
    opened: list[OpenAI] = []

    def client(principal: str) -> OpenAI:
        opened.append(
            OpenAI(base_url=f"{gateway.address}/v1", api_key=gateway.token(principal), max_retries=0)
        )
        return opened[-1]

    yield client
    for each in opened:
        each.close()


@pytest.fixture
def client(client_of: Callable[[str], OpenAI]) -> OpenAI:
    return client_of(resources.SEARCH)


@pytest.fixture
def api(platform_in_process: BatchPlatform) -> Api:
    """The function without a network, called by team search."""
    return Api(platform_in_process)
