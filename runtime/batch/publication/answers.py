"""Converts a row of the output file to a signal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from batch.contracts.request import JobRequest, Publication
from batch.publication.prompts import PromptDigests
from signals.record import InvalidSignalError, SignalRecord


def read_signals(
    rows: Iterable[bytes], request: JobRequest, publication: Publication, digests: PromptDigests
) -> Iterator[SignalRecord | None]:
    """Iterate over rows as signals; None for an answer that cannot be a signal.

    A signal's key is the line's ``custom_id``. Its value is the text of the first choice. Its time is the
    answer's ``created`` field, or the job's submission time if the field is missing.

    rows: Rows of the output of one shard.
    publication: Destination of the answers.
    digests: Digests of the shard's prompts.
    """
    for row in rows:
        values = json.loads(row)
        body = values["response"]["body"]
        text = _text(body)
        created = body.get("created")
        said = created if isinstance(created, int) else publication.version // 1000
        ordinal = int(values["id"].rpartition("_")[2])
        yield (
            None
            if text is None
            else _signal(
                name=publication.signal,
                key=values["custom_id"],
                value=text,
                version=publication.version,
                model=request.model,
                prompt_hash=digests.of(ordinal),
                time=said,
                expires=said + publication.ttl_seconds,
            )
        )


def _signal(**values: Any) -> SignalRecord | None:
    """Return a signal; None if the store cannot hold it, for example because the key is too long."""
    try:
        return SignalRecord(**values)
    except InvalidSignalError:
        return None


def _text(body: Mapping[str, Any]) -> str | None:
    """Return the text of an answer's first choice; None if it has none, for example a tool call."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return None
    message = choices[0].get("message")
    text = message.get("content") if isinstance(message, dict) else choices[0].get("text")
    return text if isinstance(text, str) and text else None
