"""A job's input through the functions of the state machine, over moto."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import boto3

from batch.contracts.request import JobRequest
from batch.preparation import handlers
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources


@dataclass(frozen=True)
class Prepared:
    """What became of a job's input."""

    planned: dict[str, Any]
    """What the last function answered."""
    segments: list[dict[str, Any]]
    """The parts of the input."""
    lines: list[dict[str, Any]]
    """Lines of all shards, in the input's order."""
    errors: list[dict[str, Any]]
    """Rows of the error file."""
    problems: dict[str, str]
    """Message by code, of a job that will not run."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of a job whose template writes the whole row."""
        return [json.loads(line["body"]["messages"][0]["content"]) for line in self.lines]

    @property
    def bad(self) -> list[tuple[int, str]]:
        """Line and message of each row of the error file."""
        return [(each["error"]["line"], each["error"]["message"]) for each in self.errors]


def put(request: JobRequest, *contents: bytes) -> None:
    """Write a job's inputs, and the job itself."""
    client = boto3.client("s3")
    for source, content in zip(request.inputs, contents, strict=True):
        client.put_object(Bucket=source.bucket, Key=source.key, Body=content)
    client.put_object(
        Bucket=resources.BUCKET, Key=JobKeys(request.job).request, Body=request.to_json().encode()
    )


def prepare(request: JobRequest, *contents: bytes) -> Prepared:
    """Write a job's inputs, prepare it, and return what came of it."""
    put(request, *contents)
    handlers._objects.cache_clear()
    keys = JobKeys(request.job)
    cut = handlers.segment({"job": request.job}, None)
    segments = _json_lines(cut["key"])
    for segment in segments:
        handlers.check({"job": request.job, "segment": segment}, None)
    planned = handlers.plan({"job": request.job, "segments": len(segments)}, None)
    shards = [
        shard
        for segment in range(len(segments))
        for shard in json.loads(resources.read_object(keys.segment(segment)))["shards"]
    ]
    lines = [
        {**line, "segment": int(shard["shard"].partition("-")[0])}
        for shard in shards
        for line in _json_lines(keys.shard(shard["shard"]).lines)
    ]
    return Prepared(
        planned,
        segments,
        sorted(lines, key=lambda line: (line["segment"], line["line"])),
        _json_lines(keys.invalid),
        {each["code"]: each["message"] for each in json.loads(resources.read_object(keys.plan))["problems"]},
    )


def _json_lines(key: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in resources.read_object(key).splitlines()]
