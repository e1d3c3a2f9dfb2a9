"""Puts the prefill worker's number of cached tokens into the decode worker's answer.

For the decode worker, every token that it reads from elsewhere is cached. As in
``pkg/sidecar/proxy/cached_tokens_usage_rewriter.go`` of
llm-d/llm-d-router, release 0.10 and later, clients see what the prefill worker had cached.
"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import ClientError, ClientResponse, web

from inference_local.serving.http_forwarding import passed_on

_DATA = b"data: "


def cached_tokens_of(answer: dict[str, Any]) -> int:
    """Return the cached tokens that a response reports; 0 if it reports none, as vLLM does for none.

    answer: A response of the OpenAI API.
    """
    details = (answer.get("usage") or {}).get("prompt_tokens_details") or {}
    return int(details.get("cached_tokens") or 0)


async def carry_with_cached_tokens(
    answer: ClientResponse, request: web.Request, cached_tokens: int
) -> web.StreamResponse:
    """Forward a response as it arrives, with another number of cached tokens wherever it reports usage.

    answer: The response of the decode worker.
    request: The request of the client.
    cached_tokens: The number to report.
    """
    headers = [each for each in passed_on(answer.headers) if each[0].lower() != "content-length"]
    if answer.content_type != "text/event-stream":
        body = with_cached_tokens(await answer.read(), cached_tokens)
        return web.Response(status=answer.status, headers=headers, body=body)
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    rest = b""
    try:
        async for chunk in answer.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            whole = b"".join(_event_line(line, cached_tokens) + b"\n" for line in lines)
            if whole:
                await response.write(whole)
        await response.write(rest)
    except ClientError:  # an interrupted response must not look complete
        if request.transport is not None:
            request.transport.close()
    return response


def with_cached_tokens(text: bytes, cached_tokens: int) -> bytes:
    """Return a JSON response with another number of cached tokens; any other text is unchanged.

    text: The response.
    """
    try:
        content = json.loads(text)
    except ValueError:
        return text
    if not isinstance(content, dict) or not isinstance(usage := content.get("usage"), dict):
        return text
    usage["prompt_tokens_details"] = {
        **(usage.get("prompt_tokens_details") or {}),
        "cached_tokens": cached_tokens,
    }
    return json.dumps(content).encode()


def _event_line(line: bytes, cached_tokens: int) -> bytes:
    """Return a line of a stream, without its line break."""
    if not line.startswith(_DATA):
        return line
    return _DATA + with_cached_tokens(line[len(_DATA) :], cached_tokens)
