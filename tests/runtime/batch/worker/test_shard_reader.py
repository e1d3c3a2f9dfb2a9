"""Lines of a shard, however its bytes come."""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass, field
from typing import Any

import boto3
import moto
import pytest
from botocore.exceptions import ResponseStreamingError
from hypothesis import given
from hypothesis import strategies as st

from batch.worker.bucket_client import BucketClient, MissingObjectError, OpenObject
from batch.worker.shard_reader import RawLine, ShardReader

LINE_BYTES = 20


@dataclass
class Pieces(io.RawIOBase):
    """Bytes that come in pieces of these sizes, and break off after the last."""

    content: bytes
    sizes: list[int]

    def read(self, _: int = -1) -> bytes:
        if not self.sizes:
            raise ResponseStreamingError(error="broken off")
        taken = min(self.sizes.pop(0), len(self.content))
        piece, self.content = self.content[:taken], self.content[taken:]
        return piece


@dataclass
class FakeBucket:
    """A bucket with one object, each of whose connections breaks off."""

    content: bytes
    connections: list[list[int]] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)

    async def open(self, _: str, first: int = 0) -> OpenObject:
        self.opened.append(first)
        left = self.content[first:]
        sizes = self.connections.pop(0) if self.connections else [len(left) + 1, 1]
        return OpenObject(Pieces(left, sizes), len(left), "")


def read(bucket: Any, line_bytes: int = LINE_BYTES) -> list[RawLine]:
    async def go() -> list[RawLine]:
        reader = ShardReader(bucket, "shard", line_bytes=line_bytes)
        return [line async for lines in reader.batches() for line in lines]

    return asyncio.run(go())


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(seconds: float) -> None:
        return None

    monkeypatch.setattr(asyncio, "sleep", at_once)


@given(
    st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=12),
    st.lists(st.lists(st.integers(1, 25), min_size=1, max_size=5), max_size=6),
)
def test_lines_are_whole_however_they_come(lines: list[bytes], connections: list[list[int]]) -> None:
    bucket = FakeBucket(b"".join(line + b"\n" for line in lines), connections)
    found = read(bucket)
    assert [line.ordinal for line in found] == list(range(len(lines)))
    for line, wanted in zip(found, lines, strict=True):
        assert line.too_long == (len(wanted) > LINE_BYTES)
        assert wanted.startswith(line.content)
        assert line.too_long or line.content == wanted


def test_the_last_line_needs_no_end() -> None:
    assert [line.content for line in read(FakeBucket(b"a\nb"))] == [b"a", b"b"]


def test_an_empty_file_has_no_line() -> None:
    assert read(FakeBucket(b"")) == []


def test_a_line_of_any_length_takes_no_room() -> None:
    bucket = FakeBucket(b"ab\n" + b"x" * 5_000_000 + b"\ncd\n")
    found = read(bucket)
    assert [line.too_long for line in found] == [False, True, False]
    assert len(found[1].content) <= 4096


def test_a_connection_that_never_brings_anything_is_an_error_in_the_end() -> None:
    bucket = FakeBucket(b"abc\n", [[] for _ in range(100)])
    with pytest.raises(ResponseStreamingError):
        read(bucket)
    assert 2 < len(bucket.opened) < 20


def test_a_shard_that_is_not_there_is_named() -> None:
    with moto.mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="here")
        with pytest.raises(MissingObjectError, match="s3://here/shard does not exist"):
            read(BucketClient(client, "here"))
