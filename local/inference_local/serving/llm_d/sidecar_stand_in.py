"""A stand-in for llm-d's routing sidecar, in front of a decode worker.

A separate program: ``python -m inference_local.serving.llm_d.sidecar_stand_in ADDRESS WORKER_PORT
ARGUMENTS``, with the plan's arguments for the sidecar. Llm-d publishes its own as a container image. This one
follows the protocol of its ``nixlv2`` connector (``pkg/sidecar/proxy/connector_nixlv2.go`` of
llm-d/llm-d-router, release 0.10 and later):

1. The prefill worker that the picker named computes the prompt and one token.
2. The decode worker gets the request with the ``kv_transfer_params`` of that answer, and reads the KV cache.
3. If the prefill worker refuses or does not answer, the client gets its error. There is no second attempt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession, web

from inference_local.serving.http_forwarding import (
    application,
    carry,
    forward,
    forwarding_session,
    passed_on,
)

# Puts the prefill worker's number of cached tokens into the decode worker's answer.
#
# For the decode worker, every token that it reads from elsewhere is cached. As in
# ``pkg/sidecar/proxy/cached_tokens_usage_rewriter.go`` of
# llm-d/llm-d-router, release 0.10 and later, clients see what the prefill worker had cached.

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


#: The picker's choice of a prefill worker, as ``host:port``.
PREFILL_HEADER = "x-prefiller-host-port"
_REQUEST_ID = "x-request-id"
_CHAT_LIMITS = ("max_tokens", "max_completion_tokens", "min_tokens")
#: Requests whose prompt is computed elsewhere, with the names of their limits on the answer's length.
_LENGTH_LIMITS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "/v1/chat/completions": _CHAT_LIMITS,
        "/v1/completions": _CHAT_LIMITS,
        "/v1/messages": _CHAT_LIMITS,
        "/v1/responses": ("max_output_tokens",),
    }
)
_TRANSFER = "kv_transfer_params"
#: What asks vLLM's NixlConnector to keep the blocks of a prompt for another worker.
_FOR_ANOTHER_WORKER: Mapping[str, object] = MappingProxyType(
    {
        "do_remote_decode": True,
        "do_remote_prefill": False,
        "remote_engine_id": None,
        "remote_block_ids": None,
        "remote_host": None,
        "remote_port": None,
    }
)


class SidecarStandIn:
    """Answers the requests of one decode worker.

    worker: Host and port of the decode worker.
    session: For requests to the workers.
    """

    def __init__(self, worker: tuple[str, int], session: ClientSession) -> None:
        self._worker = worker
        self._session = session

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request, with the prompt computed by a prefill worker if the picker named one."""
        body = await request.read()
        prefill = request.headers.get(PREFILL_HEADER, "").split(",")[0].strip()
        if request.method == "POST" and prefill and request.path in _LENGTH_LIMITS:
            return await self._disaggregated(request, body, prefill)
        return await self._decode(request, body, {})

    async def _disaggregated(self, request: web.Request, body: bytes, prefill: str) -> web.StreamResponse:
        try:
            content = json.loads(body)
        except ValueError as error:
            return _error(400, "BadRequestError", str(error))
        if not isinstance(content, dict):
            return _error(400, "BadRequestError", "the body is not a JSON object")
        identity = str(uuid.uuid4())
        host, _, port = prefill.rpartition(":")
        try:
            answer = await forward(
                request,
                json.dumps(prefill_request(content, _LENGTH_LIMITS[request.path])).encode(),
                (host, int(port)),
                self._session,
                without=(PREFILL_HEADER,),
                added=((_REQUEST_ID, identity),),
            )
            async with answer:
                if not answer.ok:
                    return await carry(answer, request)
                computed = await answer.json()
        except (ClientError, OSError) as error:
            return _error(502, "BadGateway", f"the prefill worker does not answer: {error}")
        decode = json.dumps({**content, _TRANSFER: computed.get(_TRANSFER)}).encode()
        return await self._decode(
            request, decode, {_REQUEST_ID: identity}, cached_tokens=cached_tokens_of(computed)
        )

    async def _decode(
        self,
        request: web.Request,
        body: bytes,
        added: Mapping[str, str],
        *,
        cached_tokens: int | None = None,
    ) -> web.StreamResponse:
        try:
            answer = await forward(
                request,
                body,
                self._worker,
                self._session,
                without=(PREFILL_HEADER,),
                added=tuple(added.items()),
            )
        except (ClientError, OSError) as error:
            return _error(503, "ServiceUnavailable", f"the decode worker does not answer: {error}")
        async with answer:
            if cached_tokens is None:
                return await carry(answer, request)
            return await carry_with_cached_tokens(answer, request, cached_tokens)


def prefill_request(content: Mapping[str, Any], limits: tuple[str, ...]) -> dict[str, Any]:
    """Return the request that computes a prompt: one token, in one piece, with its blocks kept."""
    kept = {name: value for name, value in content.items() if name != "stream_options"}
    return {**kept, **dict.fromkeys(limits, 1), "stream": False, _TRANSFER: dict(_FOR_ANOTHER_WORKER)}


def _error(status: int, kind: str, message: str) -> web.Response:
    """Return an error in the sidecar's format, which is not that of the OpenAI API."""
    content = {"object": "error", "message": message, "type": kind, "param": "", "code": status}
    return web.json_response(content, status=status)


def _arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("address")
    parser.add_argument("worker_port", type=int)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--kv-connector", choices=("nixlv2",), required=True)
    parser.add_argument("--secure-proxy", choices=("false",), required=True)
    return parser.parse_args(words)


async def main() -> None:
    """Serve until the process ends."""
    options = _arguments()
    async with forwarding_session() as session:
        sidecar = SidecarStandIn((options.address, options.worker_port), session)
        runner = application(sidecar.handle)
        await runner.setup()
        await web.TCPSite(runner, options.address, options.port).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
