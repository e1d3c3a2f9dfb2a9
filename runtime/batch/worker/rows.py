"""Rows of output and error files, as the OpenAI Batch API has them.

A line that the endpoint answered has a response, whatever its status; one that it did not has an error
instead (https://platform.openai.com/docs/api-reference/batch/request-output).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import orjson

from batch.contracts.shard import Usage

ErrorCode = Literal[
    "batch_expired", "endpoint_error", "image_error", "invalid_line", "line_too_long", "template_error"
]

_SUCCEEDED: Final = range(200, 300)


class RowIdentifier:
    """Identifiers of a shard's rows, by which a line is known in the log.

    Parameters
    ----------
    job, shard
        The job's identifier and the shard's name.
    """

    def __init__(self, job: str, shard: str) -> None:
        self._begin = b'{"id":"batch_req_%b_%b_' % (job.encode(), shard.encode())

    def begin(self, ordinal: int, custom_id: str | None) -> bytes:
        """Return how the row of a line begins.

        Parameters
        ----------
        ordinal
            The line.
        custom_id
            The team's name for it, where the line could be read.
        """
        return b'%b%d","custom_id":%b,' % (self._begin, ordinal, orjson.dumps(custom_id))

    def ordinal(self, row: bytes) -> int:
        """Return the line that a row is of; the identifier stands first in each.

        Parameters
        ----------
        row
            A row of `response_row` or `error_row`.
        """
        begin = len(self._begin)
        return int(row[begin : row.index(b'"', begin)])


def response_row(
    identifier: RowIdentifier, ordinal: int, custom_id: str, *, status: int, request_id: str, body: bytes
) -> bytes:
    """Return the row of a line that the endpoint answered.

    Parameters
    ----------
    identifier, ordinal
        The line.
    custom_id
        The team's name for it.
    status
        Of the answer.
    request_id
        The endpoint's name for the request.
    body
        The answer, JSON without ends of line.
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
    """Return the row of a line that has no answer.

    Parameters
    ----------
    identifier, ordinal
        The line.
    custom_id
        The team's name for it, where the line could be read.
    code, message
        Why.
    """
    error = orjson.dumps({"code": code, "message": message})
    return b'%b"response":null,"error":%b}' % (identifier.begin(ordinal, custom_id), error)


@dataclass(slots=True)
class Tally:
    """What rows add up to.

    Parameters
    ----------
    completed
        Rows that belong to the output.
    input_tokens, cached_tokens, output_tokens
        What the endpoint counted for them.
    """

    completed: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    @property
    def usage(self) -> Usage:
        """What the endpoint counted."""
        return Usage(self.input_tokens, self.cached_tokens, self.output_tokens)

    def add(self, row: bytes) -> bool:
        """Count a row, and return whether it belongs to the output.

        Parameters
        ----------
        row
            A row of `response_row` or `error_row`.
        """
        response = orjson.loads(row)["response"]
        if response is None or response["status_code"] not in _SUCCEEDED:
            return False
        self.completed += 1
        usage = response["body"].get("usage")
        if isinstance(usage, dict):
            details = usage.get("prompt_tokens_details") or {}
            self.input_tokens += usage.get("prompt_tokens") or 0
            self.cached_tokens += details.get("cached_tokens") or 0
            self.output_tokens += usage.get("completion_tokens") or 0
        return True
