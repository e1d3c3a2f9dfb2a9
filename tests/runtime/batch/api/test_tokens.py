"""The official client with a token of the house, through the authorizer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import boto3
import pytest
import urllib3
from openai import APIStatusError, AsyncOpenAI, AuthenticationError, OpenAI, PermissionDeniedError

from batch.api.handler import build
from batch.authorizer.caller_identity import CallerIdentity
from batch.authorizer.handler import Authorizer
from batch.jobs.settings import BatchPlatform
from inference_blueprints.operate.batch.batch_api_client import batch_token
from inference_contracts.batch_names import token_audience
from tests.runtime.batch import resources
from tests.runtime.batch.api.gateway import GATEWAY_RESPONSES, Gateway
from tests.runtime.batch.authorizer.sts import Sts

SEARCH = ("AKIAIOSFODNN7EXAMPLE", "secret-of-search")
NOBODY = ("AKIAIOSFODNN7NOBODYX", "secret-of-nobody")


@pytest.fixture
def sts() -> Iterator[Sts]:
    with Sts() as running:
        running.knows(*SEARCH, resources.SEARCH)
        running.knows(*NOBODY, resources.NOBODY)
        yield running


@pytest.fixture
def address(platform: BatchPlatform, sts: Sts) -> Iterator[str]:
    identity = CallerIdentity(
        urllib3.PoolManager(),
        region=resources.REGION,
        audience=token_audience(resources.ACCOUNT, "chat"),
        endpoint=sts.endpoint,
    )
    authorizer = Authorizer(platform.configuration, identity, region=resources.REGION, remembered_seconds=300)
    with Gateway(build(platform).resolve, authorizer.decide) as running:
        yield f"{running.address}/v1"


def token(credentials: tuple[str, str] = SEARCH) -> str:
    session = boto3.Session(*credentials, region_name=resources.REGION)
    return batch_token(session, platform="chat", region=resources.REGION, account=resources.ACCOUNT)


def test_a_token_is_an_api_key(address: str) -> None:
    with OpenAI(base_url=address, api_key=token()) as client:
        file = client.files.create(file=("in.jsonl", b"{}\n"), purpose="batch")
        assert client.files.content(file.id).read() == b"{}\n"


def test_a_client_may_make_a_token_for_each_request(address: str, sts: Sts) -> None:
    made: list[str] = []

    def make() -> str:
        made.append(token())
        return made[-1]

    with OpenAI(base_url=address, api_key=make) as client:
        assert list(client.batches.list()) == []
        assert list(client.files.list()) == []
    assert len(made) == len(sts.requests) == 2


async def _files(address: str) -> list[object]:
    async with AsyncOpenAI(base_url=address, api_key=token()) as client:
        await client.files.create(file=("in.jsonl", b"{}\n"), purpose="batch")
        return [file async for file in client.files.list()]


def test_the_asynchronous_client_does_as_well(address: str) -> None:
    assert len(asyncio.run(_files(address))) == 1


def test_who_has_no_token_is_told_how_to_make_one(address: str) -> None:
    with (
        OpenAI(base_url=address, api_key="sk-of-another-platform", max_retries=0) as client,
        pytest.raises(AuthenticationError, match="blueprints token") as refused,
    ):
        client.batches.list()
    assert refused.value.code == "invalid_api_key"


def test_who_is_in_no_team_is_told_so(address: str) -> None:
    with (
        OpenAI(base_url=address, api_key=token(NOBODY), max_retries=0) as client,
        pytest.raises(PermissionDeniedError, match="Nobody/eve does not belong to a team of chat"),
    ):
        client.batches.list()


def test_a_request_that_lambda_does_not_take_is_refused_with_the_alternatives(address: str) -> None:
    with (
        OpenAI(base_url=address, api_key=token(), max_retries=0) as client,
        pytest.raises(APIStatusError, match="upload_file_chunked") as refused,
    ):
        client.files.create(file=("in.jsonl", b"x" * 6 * 2**20), purpose="batch")
    assert refused.value.status_code == 413


def test_what_the_gateway_answers_has_the_shape_of_the_openai_api() -> None:
    for response in GATEWAY_RESPONSES.values():
        assert set(response) == {"statusCode", "body"}
        assert set(response["body"]["error"]) == {"message", "type", "param", "code"}
        json.dumps(response)
