"""Reads the results of a shard: parts of finished turns, and commits of a turn that did not finish."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from batch.contracts.shard import ShardDone, Usage
from batch.objects import Objects
from inference_blueprints.contracts.batch_keys import ShardKeys

_SUCCEEDED = range(200, 300)
_EXPIRED = "batch_expired"


@dataclass(frozen=True, slots=True)
class ShardResults:
    """Results of a shard.

    Parameters
    ----------
    report
        Counts of the lines that have ended.
    output, error
        Sizes by key of the objects with results, and of those with failed lines.
    is_done
        Whether all lines of the shard have ended.
    """

    report: ShardDone
    output: Mapping[str, int]
    error: Mapping[str, int]
    is_done: bool


def read_results(keys: ShardKeys, parts: Mapping[str, int], objects: Objects) -> ShardResults:
    """Read the results of a shard. Commits of an unfinished turn are written as its rest.

    Parameters
    ----------
    parts
        Sizes by key of all parts of the job.
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
    rest = _Rest(report.shard)
    output[keys.rest_output] = rest.write_output(keys, objects)
    error[keys.rest_error] = rest.write_errors(keys, objects, expired)
    return ShardResults(report.followed_by(rest.report), output, error, is_done=False)


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

    def write_output(self, keys: ShardKeys, objects: Objects) -> int:
        """Write the answers, and return their size in bytes."""
        chunks = objects.sizes(keys.chunks)
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
        self._count_error(row, is_expired=error is not None and error["code"] == _EXPIRED)
        return False

    def _count_error(self, row: bytes, *, is_expired: bool) -> None:
        """Keep the row of a failed line."""
        self._errors.append(row)
        expired = self.report.expired + is_expired
        self.report = replace(self.report, failed=self.report.failed + 1, expired=expired)


def _rows(content: bytes) -> list[bytes]:
    """Return the rows of an object, without line ends."""
    return content.split(b"\n")[:-1]


def _ordinal(row: Mapping[str, str]) -> int:
    """Return the ordinal of a row's line within the shard."""
    return int(row["id"].rpartition("_")[2])
