"""A row of the output as a signal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from batch.contracts.request import JobRequest, Publication
from batch.publication.prompts import PromptDigests
from signals.record import InvalidSignalError, Signal


def read_signals(
    rows: Iterable[bytes], request: JobRequest, publication: Publication, digests: PromptDigests
) -> Iterator[Signal | None]:
    """Iterate over rows as signals; None for an answer that cannot be one.

    A signal's key is the line's ``custom_id``, its value the text of the first choice. It was said when the
    answer says that it was ``created``, or when the job was submitted where that says nothing.

    Parameters
    ----------
    rows
        Rows of the output of one shard.
    request
        The job.
    publication
        Where its answers go.
    digests
        What the shard asked.
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


def _signal(**values: Any) -> Signal | None:
    """Return a signal; None where the store could not give it back, as with a key that is too long."""
    try:
        return Signal(**values)
    except InvalidSignalError:
        return None


def _text(body: Mapping[str, Any]) -> str | None:
    """Return the text of an answer's first choice; None where it has none, as with a call of a tool."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return None
    message = choices[0].get("message")
    text = message.get("content") if isinstance(message, dict) else choices[0].get("text")
    return text if isinstance(text, str) and text else None
