"""Whatever the sizes of parts, every row is in the whole once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from batch.completion import merging
from batch.completion.merging import Outcome, merge
from batch.completion.shard_results import Unrun
from batch.contracts.shard import ShardDone, Usage
from batch.objects import Objects
from inference_contracts.batch_keys import JobKeys

KEYS = JobKeys("j1")
CANCELLED = Unrun("batch_cancelled", "The batch was cancelled.")
MIB = 2**20


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="batch", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        yield client


def put(s3: Any, key: str, content: bytes) -> None:
    s3.put_object(Bucket="batch", Key=key, Body=content)


def read(s3: Any, key: str) -> bytes:
    content: bytes = s3.get_object(Bucket="batch", Key=key)["Body"].read()
    return content


def rows(prefix: str, size: int) -> bytes:
    """Rows of about that many bytes in all."""
    width = 1000
    return b"".join(
        json.dumps({"id": f"{prefix}-{number}", "pad": "x" * width}).encode() + b"\n"
        for number in range(size // width)
    )


def shard(s3: Any, name: str, output: bytes, error: bytes = b"", *, done: bool = True) -> None:
    keys = KEYS.shard(name)
    put(s3, keys.output, output)
    put(s3, keys.error, error)
    if done:
        report = ShardDone(name, output.count(b"\n"), error.count(b"\n"), 7, Usage(100, 40, 10))
        put(s3, keys.done, report.to_json().encode())


def list_shards(s3: Any, *names: str) -> None:
    put(s3, KEYS.shards, b"".join(json.dumps({"shard": name, "lines": 1}).encode() + b"\n" for name in names))


def merged() -> Outcome:
    outcome = merge("j1", 1, Objects("batch"), unrun=CANCELLED, has_time=lambda: True)
    assert outcome is not None
    return outcome


@pytest.mark.parametrize(
    "sizes",
    [
        [0],
        [2000],
        [2000, 0, 5000],
        [6 * MIB],
        [6 * MIB, 2000, 7 * MIB, 3 * MIB, 4 * MIB],
        pytest.param([5 * MIB - 500, 5 * MIB + 2000, 12 * MIB], marks=pytest.mark.thorough),
        pytest.param([4 * MIB] * 7 + [6 * MIB], marks=pytest.mark.thorough),
        pytest.param([4 * MIB] * 9, marks=pytest.mark.thorough),
    ],
)
def test_every_row_is_in_the_whole_once(s3: Any, sizes: list[int]) -> None:
    contents = {f"s{number}": rows(f"s{number}", size) for number, size in enumerate(sizes)}
    list_shards(s3, *contents)
    for name, content in contents.items():
        shard(s3, name, content, b'{"id":"bad"}\n')
    put(s3, KEYS.invalid, b'{"id":null}\n{"id":null}\n')
    outcome = merged()
    expected = Counter(line for content in contents.values() for line in content.splitlines())
    assert Counter(read(s3, KEYS.output).splitlines()) == expected
    assert read(s3, KEYS.error).count(b"\n") == 2 + len(sizes)
    assert (outcome.completed, outcome.failed) == (expected.total(), 2 + len(sizes))
    assert outcome.usage == Usage(100 * len(sizes), 40 * len(sizes), 10 * len(sizes))
    assert outcome.undone == ()
    assert s3.list_multipart_uploads(Bucket="batch").get("Uploads", []) == []


def test_a_shard_that_is_not_done_is_named_and_left_out(s3: Any) -> None:
    list_shards(s3, "a", "b", "c")
    shard(s3, "a", b'{"id":1}\n')
    shard(s3, "b", b'{"id":2}\n', done=False)
    outcome = merged()
    assert outcome.undone == ("b", "c")
    assert read(s3, KEYS.output) == b'{"id":1}\n'


def test_an_upload_that_fails_leaves_nothing_to_be_paid_for(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    list_shards(s3, "a")
    shard(s3, "a", rows("a", 6 * MIB))
    objects = Objects("batch")

    def refuse(**_: Any) -> None:
        raise ConnectionError("reset")

    monkeypatch.setattr(objects._client, "upload_part_copy", refuse)
    with pytest.raises(ConnectionError):
        merge("j1", 1, objects, unrun=CANCELLED, has_time=lambda: True)
    assert s3.list_multipart_uploads(Bucket="batch").get("Uploads", []) == []


def test_results_that_one_call_cannot_join_are_joined_by_several(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call continues after the last, reads a bounded number of bytes, and no row is lost or doubled."""
    monkeypatch.setattr(merging, "_AT_ONCE_BYTES", 6 * MIB)
    monkeypatch.setattr(merging, "_GROUP_BYTES", 6 * MIB)
    contents = {f"s{number:02}": rows(f"s{number}", (1 + number % 6) * MIB) for number in range(18)}
    list_shards(s3, *contents)
    for name, content in contents.items():
        shard(s3, name, content)
    objects = Objects("batch")
    read_bytes, plain_read, plain_pieces = [0], objects.read, objects.pieces

    def counted(key: str, content: bytes) -> bytes:
        read_bytes[-1] += len(content) if "/parts/" in key and key.endswith("output.jsonl") else 0
        return content

    def pieces(key: str) -> Iterator[bytes]:
        return (counted(key, piece) for piece in plain_pieces(key))

    monkeypatch.setattr(objects, "read", lambda key: counted(key, plain_read(key)))
    monkeypatch.setattr(objects, "pieces", pieces)
    outcome = None
    while outcome is None:
        steps = iter([True])
        outcome = merge("j1", 1, objects, unrun=CANCELLED, has_time=lambda steps=steps: next(steps, False))  # type: ignore[misc]
        read_bytes.append(0)
    small = sum(len(content) for content in contents.values() if len(content) < 5 * MIB)
    assert sum(read_bytes) == small, "nothing is read twice"
    assert max(read_bytes) <= (6 + 5) * MIB, "a call reads one group"
    assert len([each for each in read_bytes if each]) >= 4
    expected = Counter(line for content in contents.values() for line in content.splitlines())
    assert Counter(read(s3, KEYS.output).splitlines()) == expected


@pytest.mark.thorough
def test_more_large_results_than_one_upload_takes_are_copied_in_groups(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "_MAX_LARGE", 4)
    contents = {f"s{number}": rows(f"s{number}", 6 * MIB) for number in range(7)}
    list_shards(s3, *contents)
    for name, content in contents.items():
        shard(s3, name, content)
    merged()
    expected = Counter(line for content in contents.values() for line in content.splitlines())
    assert Counter(read(s3, KEYS.output).splitlines()) == expected
