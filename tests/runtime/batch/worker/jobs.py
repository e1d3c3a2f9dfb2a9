"""Jobs of which every shard is on its way to a worker, and an independent look at what came of them."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardLine
from inference_contracts.batch_keys import JobKeys

BUCKET = "batch-of-the-platform"
MODEL = "qwen"
PATIENCE_SECONDS = 120.0

_numbers = itertools.count()


def lines(count: int, prefix: str = "") -> list[ShardLine]:
    """Return lines with short prompts."""
    return [
        ShardLine(
            ordinal=ordinal,
            line=ordinal + 1,
            custom_id=f"{prefix}line-{ordinal}",
            tokens=3,
            body={"model": "any", "messages": [{"role": "user", "content": f"{prefix}{ordinal}"}]},
        )
        for ordinal in range(count)
    ]


@dataclass
class Job:
    """A job whose shards lie in S3."""

    s3: Any
    name: str
    shards: dict[str, list[str]]

    @property
    def keys(self) -> JobKeys:
        return JobKeys(self.name)

    def object(self, key: str) -> bytes | None:
        try:
            return bytes(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
        except self.s3.exceptions.NoSuchKey:
            return None

    def done(self, shard: str = "00000") -> dict[str, Any] | None:
        found = self.object(self.keys.shard(shard).done)
        return json.loads(found) if found else None

    def committed(self, shard: str = "00000") -> list[dict[str, Any]]:
        """Return the rows of a shard's log, in its order."""
        prefix = self.keys.shard(shard).chunks
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        assert keys == [self.keys.shard(shard).chunk(number) for number in range(len(keys))]
        return [json.loads(row) for key in keys for row in (self.object(key) or b"").splitlines()]

    def rows(self, shard: str = "00000") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the rows of the output and of the error file."""
        keys = self.keys.shard(shard)
        output = self.object(keys.output)
        error = b"".join(self.object(key) or b"" for key in (keys.error, keys.expired))
        assert output is not None
        return [json.loads(row) for row in output.splitlines()], [
            json.loads(row) for row in error.splitlines()
        ]

    def check(self, failed: Sequence[str] = ()) -> None:
        """Make sure that each line of every shard has one row: an answer to itself, or an error."""
        for shard, custom_ids in self.shards.items():
            done = self.done(shard)
            assert done is not None, f"shard {shard} is not done"
            output, error = self.rows(shard)
            found = Counter(row["custom_id"] for row in [*output, *error])
            assert found == Counter(custom_ids), f"lost or doubled: {found - Counter(custom_ids)}"
            identifiers = {row["id"] for row in [*output, *error]}
            assert identifiers == {
                f"batch_req_{self.name}_{shard}_{number}" for number in range(len(custom_ids))
            }
            assert (done["completed"], done["failed"]) == (len(output), len(error))
            wanted = sorted(set(failed) & set(custom_ids))
            assert sorted(row["custom_id"] for row in error) == wanted
            assert done["usage"]["output_tokens"] == 2 * len(output)
            for row in output:
                ordinal = row["id"].rpartition("_")[2]
                content = row["response"]["body"]["choices"][0]["message"]["content"]
                assert row["error"] is None
                assert content.endswith(ordinal)

    def wait(self, condition: Any, what: str) -> None:
        wait_until(condition, what)


def put_job(
    s3: Any,
    shards: dict[str, list[ShardLine]],
    *,
    deadline_seconds: float = 3600.0,
    data_prefixes: tuple[str, ...] = (),
    name: str | None = None,
    endpoint: str = "/v1/chat/completions",
) -> Job:
    """Write a job and its shards."""
    name = name or f"job{next(_numbers)}"
    keys = JobKeys(name)
    description = JobDescription(
        job=name,
        team="ads",
        model=MODEL,
        endpoint=endpoint,
        deadline=time.time() + deadline_seconds,
        data_prefixes=data_prefixes,
    )
    s3.put_object(Bucket=BUCKET, Key=keys.description, Body=description.to_json().encode())
    for shard, content in shards.items():
        text = "".join(line.to_json() + "\n" for line in content)
        s3.put_object(Bucket=BUCKET, Key=keys.shard(shard).lines, Body=text.encode())
    return Job(s3, name, {shard: [line.custom_id for line in content] for shard, content in shards.items()})


def wait_until(condition: Any, what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for something; it never takes as long as this on a machine that works."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)
