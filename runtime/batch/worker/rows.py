"""Rows of output and error files, as the OpenAI Batch API has them.

A line that the endpoint answered has a response, whatever its status; one that it did not has an error
instead (https://platform.openai.com/docs/api-reference/batch/request-output).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from batch.contracts.shard import Usage

ErrorCode = Literal[
    "batch_expired", "endpoint_error", "image_error", "invalid_line", "line_too_long", "template_error"
]

_SUCCEEDED: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class RowIdentifier:
    """Identifiers of a shard's rows, by which a line is known in the log.

    Parameters
    ----------
    job, shard
        The job's identifier and the shard's name.
    """

    job: str
    shard: str

    @property
    def prefix(self) -> str:
        """What stands before the ordinal."""
        return f"batch_req_{self.job}_{self.shard}_"

    def ordinal(self, row: bytes) -> int:
        """Return the line that a row is of; the identifier stands first in each.

        Parameters
        ----------
        row
            A row of `response_row` or `error_row`.
        """
        begin = len(_BEGIN) + len(self.prefix)
        return int(row[begin : row.index(b'"', begin)])


_BEGIN: Final = b'{"id":"'


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
    return b"%b%b%d%b%b%b%d%b%b%b%b%b" % (
        _BEGIN,
        identifier.prefix.encode(),
        ordinal,
        b'","custom_id":',
        orjson.dumps(custom_id),
        b',"response":{"status_code":',
        status,
        b',"request_id":',
        orjson.dumps(request_id),
        b',"body":',
        body,
        b'},"error":null}',
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
    return b"%b%b%d%b%b%b%b%b" % (
        _BEGIN,
        identifier.prefix.encode(),
        ordinal,
        b'","custom_id":',
        orjson.dumps(custom_id),
        b',"response":null,"error":',
        orjson.dumps({"code": code, "message": message}),
        b"}",
    )


@dataclass(frozen=True, slots=True)
class RowSummary:
    """What counts of a row.

    Parameters
    ----------
    succeeded
        Whether it belongs to the output.
    usage
        What the endpoint counted.
    """

    succeeded: bool
    usage: Usage


def summarise(row: bytes) -> RowSummary:
    """Read a row.

    Parameters
    ----------
    row
        A row of `response_row` or `error_row`.
    """
    response = orjson.loads(row)["response"]
    if response is None or response["status_code"] not in _SUCCEEDED:
        return RowSummary(succeeded=False, usage=Usage())
    return RowSummary(succeeded=True, usage=usage_of(response["body"]))


def usage_of(answer: dict[str, Any]) -> Usage:
    """Return what an answer says it took; nothing where it does not say so.

    Parameters
    ----------
    answer
        Body of an answer of a completion, a chat completion or an embedding.
    """
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        input_tokens=usage.get("prompt_tokens") or 0,
        cached_tokens=details.get("cached_tokens") or 0,
        output_tokens=usage.get("completion_tokens") or 0,
    )
