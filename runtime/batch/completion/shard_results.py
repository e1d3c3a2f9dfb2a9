"""Reads the results of a shard: parts of finished turns, and commits of a turn that did not finish."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from botocore.exceptions import ClientError

from batch.contracts.shard import EXPIRED_CODES, ShardDone, Usage
from batch.objects import Objects
from batch.preparation.line_reader import read_lines
from batch.s3_errors import code_of
from inference_contracts.batch_keys import ShardKeys

_SUCCEEDED = range(200, 300)
#: The beginning of a shard's line, as `ShardLine.to_json` writes it.
_LINE: Final = re.compile(rb'\{"ordinal":(\d+),"line":\d+,"custom_id":("(?:[^"\\]|\\.)*")')
_MAX_LINE_BYTES: Final = 2**30


@dataclass(frozen=True, slots=True)
class Unrun:
    """Why lines without a result never ran, in OpenAI's format of an error."""

    code: str
    """``batch_cancelled`` or ``batch_expired`` as in OpenAI's API (`BatchRequestOutputError` of its OpenAPI
    description), or ``not_run``."""
    message: str
    """The reason, for people."""


@dataclass(frozen=True, slots=True)
class ShardResults:
    """Results of a shard."""

    report: ShardDone
    """Counts of the lines that have ended."""
    output: Mapping[str, int]
    """Sizes by key of the objects with results."""
    error: Mapping[str, int]
    """Sizes by key of those with failed lines."""
    is_done: bool
    """Whether all lines of the shard have ended."""


def read_results(
    keys: ShardKeys,
    parts: Mapping[str, int],
    objects: Objects,
    *,
    lines: int,
    unrun: Unrun,
    rest: Mapping[str, int],
    has_time: Callable[[], bool],
) -> ShardResults | None:
    """Read the results of a shard. Commits of an unfinished turn are written as its rest.

    parts: Sizes by key of all parts of the job.
    lines: Number of the shard's lines.
    unrun: Why lines without a result never ran.
    rest: Sizes by key of what an earlier call wrote as the rest of the job.
    has_time: Returns whether another step of some seconds may begin.
    Returns: None if time has ended.
    """
    report = ShardDone(keys.shard, 0, 0, 0)
    output: dict[str, int] = {}
    error: dict[str, int] = {}
    expired: list[bytes] = []
    while keys.done in parts:
        report = report.followed_by(ShardDone.from_json(objects.read(keys.done)))
        output[keys.output], error[keys.error] = parts.get(keys.output, 0), parts.get(keys.error, 0)
        expired = _rows(objects.read(keys.expired)) if report.expired else []
        keys = keys.next_turn
    if keys.turn and not expired:
        return ShardResults(report, output, error, is_done=True)
    chunks = objects.sizes(keys.chunks)
    left = keys.rest_unrun(len(chunks), unrun.code)
    if left not in rest and not has_time():
        return None
    found = _Rest(report.shard)
    output[keys.rest_output] = found.write_output(keys, objects, chunks)
    error[keys.rest_error] = found.write_errors(keys, objects, expired)
    report = report.followed_by(found.report)
    # A further turn has only expired lines, and their rows are there already.
    missing = 0 if keys.turn else lines - found.count
    if missing:
        error[left] = rest.get(left) or found.write_unrun(left, keys, objects, unrun, lines)
        report = replace(report, failed=report.failed + missing)
    return ShardResults(report, output, error, is_done=False)


@dataclass(slots=True)
class _Rest:
    """Commits of an unfinished turn, and the expired lines of the turn before that it did not reach."""

    shard: str
    report: ShardDone = field(init=False)
    _errors: list[bytes] = field(default_factory=list)
    _ended: set[int] = field(default_factory=set)
    _bytes: int = 0

    def __post_init__(self) -> None:
        self.report = ShardDone(self.shard, 0, 0, 0)

    @property
    def count(self) -> int:
        """Number of lines that have ended."""
        return len(self._ended)

    def write_output(self, keys: ShardKeys, objects: Objects, chunks: Mapping[str, int]) -> int:
        """Write the answers, and return their size in bytes."""
        if chunks:
            contents = (objects.read(chunk) for chunk in chunks)
            objects.write_stream(keys.rest_output, self._answers(contents))
        return self._bytes

    def write_errors(self, keys: ShardKeys, objects: Objects, expired: list[bytes]) -> int:
        """Write the failed lines, including earlier expired ones, and return their size in bytes."""
        for row in expired:
            if _ordinal(json.loads(row)) not in self._ended:
                self._count_error(row, is_expired=True)
        content = b"".join(row + b"\n" for row in self._errors)
        if content:
            objects.write(keys.rest_error, content, content_type="application/jsonl")
        return len(content)

    def write_unrun(self, key: str, keys: ShardKeys, objects: Objects, unrun: Unrun, lines: int) -> int:
        """Write a row for each line without a result, and return their size in bytes."""
        error = json.dumps({"code": unrun.code, "message": unrun.message}).encode()
        names = _custom_ids(keys, objects)
        content = b"".join(
            b'{"id":"batch_req_%b_%b_%d","custom_id":%b,"response":null,"error":%b}\n'
            % (keys.job.encode(), keys.shard.encode(), ordinal, names.get(ordinal, b"null"), error)
            for ordinal in range(lines)
            if ordinal not in self._ended
        )
        objects.write(key, content, content_type="application/jsonl")
        return len(content)

    def _answers(self, contents: Iterator[bytes]) -> Iterator[bytes]:
        """Iterate over the rows with answers, and count all other rows."""
        for content in contents:
            answers = b"".join(row + b"\n" for row in _rows(content) if self._is_answer(row))
            if answers:
                self._bytes += len(answers)
                yield answers

    def _is_answer(self, row: bytes) -> bool:
        """Count a row, and return whether it is an answer."""
        values = json.loads(row)
        self._ended.add(_ordinal(values))
        response, error = values["response"], values["error"]
        if response is not None and response["status_code"] in _SUCCEEDED:
            usage = self.report.usage + Usage.of_answer(response["body"])
            self.report = replace(self.report, completed=self.report.completed + 1, usage=usage)
            return True
        self._count_error(row, is_expired=error is not None and error["code"] in EXPIRED_CODES)
        return False

    def _count_error(self, row: bytes, *, is_expired: bool) -> None:
        """Keep the row of a failed line."""
        self._errors.append(row)
        expired = self.report.expired + is_expired
        self.report = replace(self.report, failed=self.report.failed + 1, expired=expired)


def _custom_ids(keys: ShardKeys, objects: Objects) -> dict[int, bytes]:
    """Return the custom_ids of a shard's lines as JSON; empty if the shard is gone, which ends its job."""
    names: dict[int, bytes] = {}
    try:
        for line in read_lines(objects.pieces(keys.lines), first_offset=0, limit=_MAX_LINE_BYTES):
            if found := _LINE.match(line.content or b""):
                names[int(found[1])] = found[2]
    except ClientError as error:
        if code_of(error) != "NoSuchKey":
            raise
    return names


def _rows(content: bytes) -> list[bytes]:
    """Return the rows of an object, without line ends."""
    return content.split(b"\n")[:-1]


def _ordinal(row: Mapping[str, str]) -> int:
    """Return the ordinal of a row's line within the shard."""
    return int(row["id"].rpartition("_")[2])
