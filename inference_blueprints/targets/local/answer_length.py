"""Gives OpenAI requests that leave the length of the answer open a length.

A real engine ends an answer when the model does. The simulated one cannot know, and refuses such a request
(Dynamo 1.6.1: "`max_tokens` is required by the mocker worker"). Everything else passes unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

#: Fields that state the length, by path; the first is the one that is added.
_LENGTH_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "/v1/completions": ("max_tokens",),
        "/v1/chat/completions": ("max_completion_tokens", "max_tokens"),
        "/v1/responses": ("max_output_tokens",),
    }
)


def with_answer_length(path: str, body: bytes, tokens: int) -> bytes:
    """Return the body of a request, with a length of the answer if it should state one and does not.

    Parameters
    ----------
    path
        Path of the request, without its query.
    body
        Its body; one that is not a JSON object is left for the frontend to refuse.
    tokens
        The length.
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
