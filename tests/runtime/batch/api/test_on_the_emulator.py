"""The API on the emulator of `blueprints local`: its table, its S3, its Step Functions and its STS."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import boto3
import pytest
import urllib3
from openai import BadRequestError, OpenAI, PermissionDeniedError

from batch.api.handler import build
from batch.authorizer.caller_identity import CallerIdentity
from batch.authorizer.handler import Authorizer
from batch.jobs.settings import BatchPlatform, read_platform
from inference_blueprints.operate.batch.batch_api_client import batch_token
from inference_contracts.batch_names import token_audience
from inference_local.emulator.emulator import Emulator
from tests.runtime.batch import resources
from tests.runtime.batch.api.gateway import Gateway

pytestmark = pytest.mark.clock

CONTENT = b'{"custom_id": "a"}\n' * 300_000
ROLE = "arn:aws:iam::123456789012:role/Search"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("emulator"), region=resources.REGION) as running:
        yield running


@pytest.fixture(scope="module")
def emulated(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BatchPlatform]:
    """The functions' view of the emulator."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in emulator.environment().items():
            patch.setenv(name, value)
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        yield read_platform(resources.create(tmp_path_factory.mktemp("code")))


@pytest.fixture
def address(emulator: Emulator, emulated: BatchPlatform) -> Iterator[str]:
    identity = CallerIdentity(
        urllib3.PoolManager(),
        region=resources.REGION,
        audience=token_audience(resources.ACCOUNT, "chat"),
        endpoint=emulator.endpoint_url,
    )
    authorizer = Authorizer(emulated.configuration, identity, region=resources.REGION, remembered_seconds=300)
    with Gateway(build(emulated).resolve, authorizer.decide) as running:
        yield f"{running.address}/v1"


def session_of_the_role(emulator: Emulator) -> boto3.Session:
    """Return somebody's session in the role of team search."""
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    emulator.client("iam").create_role(RoleName="Search", AssumeRolePolicyDocument=policy)
    assumed = emulator.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="anna")["Credentials"]
    return boto3.Session(assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"])


def test_a_role_submits_and_cancels(emulator: Emulator, address: str, emulated: BatchPlatform) -> None:
    session = session_of_the_role(emulator)
    token = batch_token(session, platform="chat", region=resources.REGION, account=resources.ACCOUNT)
    with OpenAI(base_url=address, api_key=token, max_retries=0) as client:
        upload = client.uploads.upload_file_chunked(
            file=CONTENT,
            filename="in.jsonl",
            bytes=len(CONTENT),
            mime_type="application/jsonl",
            purpose="batch",
            part_size=4 * 2**20,
            md5=hashlib.md5(CONTENT).hexdigest(),  # noqa: S324 - the API's digest
        )
        assert upload.file is not None
        assert client.files.content(upload.file.id).read() == CONTENT
        batches = [
            client.batches.create(
                input_file_id=upload.file.id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                extra_headers={"Idempotency-Key": key},
            )
            for key in ("one", "two", "one")
        ]
        first, second, again = (batch.id for batch in batches)
        assert again == first
        assert [batch.id for batch in client.batches.list(limit=1)] == [second, first]
        assert [job.id for job in emulated.jobs.in_state("validating")] == [first, second]
        for _ in range(2):
            assert client.batches.cancel(first).status == "cancelling"
        assert [job.id for job in emulated.jobs.in_state("cancelling")] == [first]
        emulated.jobs.move(first, "cancelled", before=["cancelling"], now=1)
        emulated.jobs.move(second, "failed", before=["validating"], now=1)
        with pytest.raises(BadRequestError):
            client.batches.cancel(second)
        assert client.files.delete(upload.file.id).deleted
        assert resources.list_keys("files/") == resources.list_keys("uploads/") == []


def test_the_emulators_own_account_is_no_team(address: str) -> None:
    token = batch_token(boto3.Session(), platform="chat", region=resources.REGION, account=resources.ACCOUNT)
    with (
        OpenAI(base_url=address, api_key=token, max_retries=0) as client,
        pytest.raises(PermissionDeniedError, match="root does not belong to a team"),
    ):
        client.batches.list()
