"""Adds an answer length to OpenAI requests that state none.

In a real engine, the model decides when an answer ends. The simulated engine cannot, and refuses such a
request (Dynamo 1.6.1: "`max_tokens` is required by the mocker worker"). Other requests are unchanged.
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

    Parameters
    ----------
    path
        Path of the request, without its query.
    body
        Its body. A body that is not a JSON object is returned unchanged, and the frontend refuses it.
    tokens
        The length to add.
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
