"""A fake Hub with one model per test, and S3 in this process or in an emulator."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
import huggingface_hub.constants
import moto
import pytest

from tests.runtime.weights.fake_hub import COMMIT, FakeHub, FakeModel

BUCKET = "weights-of-the-platform"
MIB = 2**20


def _random_bytes(seed: int, size: int) -> bytes:
    """Return bytes without repetitions, always the same."""
    return random.Random(seed).randbytes(size)  # noqa: S311 - content, not a key


FILES: Mapping[str, bytes] = {
    "config.json": b'{"model_type": "qwen3"}',
    "empty.txt": b"",
    "model-00001-of-00002.safetensors": _random_bytes(1, 12 * MIB + 7),
    "model-00002-of-00002.safetensors": _random_bytes(2, 5 * MIB),
    "tokenizer/merges.txt": b"a b\n" * 1000,
}

_numbers = itertools.count()


class Published:
    """A model on the fake Hub, with a unique name."""

    def __init__(self, hub: FakeHub, files: Mapping[str, bytes]) -> None:
        self.repository = f"acme/model-{next(_numbers)}"
        self.model = hub.models[self.repository] = FakeModel(dict(files))
        self.prefix = f"huggingface/{self.repository}/{COMMIT}"
        self.environment = {
            "WEIGHTS_BUCKET": BUCKET,
            "WEIGHTS_PREFIX": self.prefix,
            "WEIGHTS_REPOSITORY": self.repository,
            "WEIGHTS_REVISION": COMMIT,
            "WEIGHTS_PART_MIB": "5",
        }


@pytest.fixture(scope="session")
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        yield running


@pytest.fixture
def publish(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Published]:
    """Publish a model. The Hub client in this process uses the fake Hub."""
    template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.endpoint)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    return lambda files=FILES: Published(hub, files)


@pytest.fixture
def published(publish: Callable[..., Published]) -> Published:
    return publish()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """S3 in this process, with the bucket."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    with moto.mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        yield client


def objects(client: Any, prefix: str) -> dict[str, bytes]:
    """Return every object below a prefix, by the rest of its key."""
    listed = client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return {
        entry["Key"].removeprefix(prefix): client.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read()
        for entry in listed
    }


def unfinished(client: Any) -> list[str]:
    """Return the keys of incomplete uploads."""
    uploads = client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    return [upload["Key"] for upload in uploads]
