"""What a shard has left: the parts of its turns that are done, and what is committed of one that is not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from batch.contracts.keys import ShardKeys
from batch.contracts.shard import ShardDone, Usage
from batch.objects import Objects

_SUCCEEDED = range(200, 300)
_EXPIRED = "batch_expired"


@dataclass(frozen=True, slots=True)
class ShardResults:
    """What a shard has left.

    Parameters
    ----------
    report
        What became of its lines, of those that have ended.
    output, error
        Bytes by key of the objects that hold its results, and its failed lines.
    is_done
        Whether that is all of them.
    """

    report: ShardDone
    output: Mapping[str, int]
    error: Mapping[str, int]
    is_done: bool


def read_results(keys: ShardKeys, parts: Mapping[str, int], objects: Objects) -> ShardResults:
    """Read what a shard has left; what is committed of a turn that is not done is written as its rest.

    Parameters
    ----------
    keys
        The shard's.
    parts
        Bytes by key of all parts of the job.
    objects
        The batch bucket.
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
    """What is committed of a turn that is not done; and of the turn before, what that has not reached."""

    shard: str
    report: ShardDone = field(init=False)
    _errors: list[bytes] = field(default_factory=list)
    _ended: set[int] = field(default_factory=set)
    _bytes: int = 0

    def __post_init__(self) -> None:
        self.report = ShardDone(self.shard, 0, 0, 0)

    def write_output(self, keys: ShardKeys, objects: Objects) -> int:
        """Write the answers, and return their bytes."""
        chunks = objects.sizes(keys.chunks)
        if chunks:
            contents = (objects.read(chunk) for chunk in chunks)
            objects.write_stream(keys.rest_output, self._answers(contents))
        return self._bytes

    def write_errors(self, keys: ShardKeys, objects: Objects, expired: list[bytes]) -> int:
        """Write the lines that failed, those included that expired before, and return their bytes."""
        for row in expired:
            if _ordinal(json.loads(row)) not in self._ended:
                self._count_error(row, is_expired=True)
        content = b"".join(row + b"\n" for row in self._errors)
        if content:
            objects.write(keys.rest_error, content, content_type="application/jsonl")
        return len(content)

    def _answers(self, contents: Iterator[bytes]) -> Iterator[bytes]:
        """Iterate over the rows of answers, and count all others too."""
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
        """Keep a row of a line that failed."""
        self._errors.append(row)
        expired = self.report.expired + is_expired
        self.report = replace(self.report, failed=self.report.failed + 1, expired=expired)


def _rows(content: bytes) -> list[bytes]:
    """Return the rows of an object, without their ends."""
    return content.split(b"\n")[:-1]


def _ordinal(row: Mapping[str, str]) -> int:
    """Return the line of the shard that a row is of."""
    return int(row["id"].rpartition("_")[2])
