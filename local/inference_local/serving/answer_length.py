"""Adds an answer length to OpenAI requests that state none.

In a real engine, the model decides when an answer ends, at the latest at the end of the context. The
simulated engine cannot, and refuses such a request (Dynamo 1.6.1: "`max_tokens` is required by the mocker
worker").
Other requests are unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

#: Fields that state the length, per path. The first field is the one that is added.
_LENGTH_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "/v1/completions": ("max_tokens",),
        "/v1/chat/completions": ("max_completion_tokens", "max_tokens"),
        "/v1/responses": ("max_output_tokens",),
    }
)


def with_answer_length(path: str, body: bytes, tokens: int) -> bytes:
    """Return the body of a request, with an answer length if it lacks a required one.

    path: Path of the request, without its query.
    body: Its body. A body that is not a JSON object is returned unchanged, and the frontend refuses it.
    tokens: The length to add.
    """
    fields = _LENGTH_FIELDS.get(path)
    if fields is None:
        return body
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(request, dict) or any(request.get(field) is not None for field in fields):
        return body
    return json.dumps({**request, fields[0]: tokens}).encode()


def fitting_length(refusal: bytes, tokens: int) -> int | None:
    """Return how much of an added answer length fits the context, if the frontend refused it as too long.

    refusal: Body of the frontend's response. It states the limit and the tokens of prompt and answer together
        (``details`` of type ``context_length``, Dynamo 1.6.1).
    tokens: The length that was added.
    Returns: A positive length. None for another refusal, or if the prompt leaves no token.
    """
    try:
        details = json.loads(refusal)["details"]
        left = tokens - (details["actual"] - details["limit"])
    except (ValueError, KeyError, TypeError):
        return None
    return left if details.get("type") == "context_length" and left > 0 else None
