"""Rows of output and error files, in the format of the OpenAI Batch API.

A line that the endpoint answered has a response, whatever its status. A line without an answer has an error
instead (https://platform.openai.com/docs/api-reference/batch/request-output).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import orjson

from batch.contracts.shard import EXPIRED_CODES, ShardDone, Usage

ErrorCode = Literal[
    "batch_expired",
    "endpoint_error",
    "image_error",
    "image_not_stored",
    "insufficient_quota",
    "invalid_line",
    "line_too_long",
]

#: The part of a shard's results that a row belongs to.
Part = Literal["output", "error", "expired"]

_SUCCEEDED: Final = range(200, 300)


class RowIdentifier:
    """Creates and parses the identifiers of a shard's rows. The log identifies lines by them."""

    def __init__(self, job: str, shard: str) -> None:
        self._begin = b'{"id":"batch_req_%b_%b_' % (job.encode(), shard.encode())

    def begin(self, ordinal: int, custom_id: str | None) -> bytes:
        """Return the beginning of a line's row.

        custom_id: The team's name for the line, if it could be read.
        """
        return b'%b%d","custom_id":%b,' % (self._begin, ordinal, orjson.dumps(custom_id))

    def ordinal(self, row: bytes) -> int:
        """Return the ordinal of a row's line. The identifier is the first field of each row.

        row: A row of `response_row` or `error_row`.
        """
        begin = len(self._begin)
        return int(row[begin : row.index(b'"', begin)])


def response_row(
    identifier: RowIdentifier, ordinal: int, custom_id: str, *, status: int, request_id: str, body: bytes
) -> bytes:
    """Return the row of a line that the endpoint answered.

    custom_id: The team's name for the line.
    request_id: The endpoint's identifier of the request.
    body: The answer, as JSON without line ends.
    """
    return b'%b"response":{"status_code":%d,"request_id":%b,"body":%b},"error":null}' % (
        identifier.begin(ordinal, custom_id),
        status,
        orjson.dumps(request_id),
        body,
    )


def error_row(
    identifier: RowIdentifier, ordinal: int, custom_id: str | None, code: ErrorCode, message: str
) -> bytes:
    """Return the row of a line without an answer.

    custom_id: The team's name for the line, if it could be read.
    """
    error = orjson.dumps({"code": code, "message": message})
    return b'%b"response":null,"error":%b}' % (identifier.begin(ordinal, custom_id), error)


@dataclass(slots=True)
class Tally:
    """Totals of rows."""

    completed: int = 0
    failed: int = 0
    """`completed`, `failed`: Rows that belong to the output, and all others."""
    expired: int = 0
    """Failed rows of lines that expired at the deadline."""
    usage: Usage = field(default_factory=Usage)
    """Token counts of the rows."""

    def add(self, row: bytes) -> Part:
        """Count a row, and return the part that it belongs to.

        row: A row of `response_row` or `error_row`.
        """
        values = orjson.loads(row)
        response, error = values["response"], values["error"]
        if response is None or response["status_code"] not in _SUCCEEDED:
            self.failed += 1
            if error is None or error["code"] not in EXPIRED_CODES:
                return "error"
            self.expired += 1
            return "expired"
        self.completed += 1
        self.usage += Usage.of_answer(response["body"])
        return "output"

    def report(self, shard: str, *, attempts: int) -> ShardDone:
        """Return the totals as the result of the shard.

        attempts: Number of requests sent for the rows.
        """
        return ShardDone(shard, self.completed, self.failed, attempts, self.usage, self.expired)
