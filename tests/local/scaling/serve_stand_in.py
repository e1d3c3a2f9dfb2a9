"""A simulated ``vllm serve``, which ends as the real one was seen to end.

A program: ``python -m tests.local.scaling.serve_stand_in PORT SHUTDOWN_SECONDS``. It answers with words of
the tokenizer at a fixed pace. After SIGTERM its ``/health`` still answers 200, it refuses new requests with a
500, completes its streams within its time, and breaks off those that take longer (real vLLM 0.31.0 in
``tests/engines/test_llm_d.py``; ``shutdown_timeout`` of ``vllm/v1/engine/core.py``).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from inference_blueprints.measure.tokenizer import one_token_words
from inference_local.serving.http_forwarding import application

_TOKEN_SECONDS = 0.02
_PROMPT_SECONDS = 0.1
_POLL_SECONDS = 0.05


class SimulatedServe:
    """Answers requests until it is told to end."""

    def __init__(self) -> None:
        self.running = 0
        self.ending = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request of the API, of the health check or of Prometheus."""
        if request.method == "GET":
            return web.Response(text=f"vllm:num_requests_running {self.running}\n")
        if self.ending.is_set():
            return web.Response(status=500, text="the engine is shutting down")
        self.running += 1
        try:
            return await self._answer(request, await request.json())
        finally:
            self.running -= 1

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        # A decode worker gets the address of the prompt's KV cache, so it computes no prompt.
        await asyncio.sleep(
            0 if body.get("kv_transfer_params", {}).get("do_remote_prefill") else _PROMPT_SECONDS
        )
        usage = {"prompt_tokens": 1, "completion_tokens": body["max_tokens"]}
        if not body.get("stream"):
            return web.json_response({"usage": usage, "kv_transfer_params": {"do_remote_prefill": True}})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number in range(body["max_tokens"]):
            await asyncio.sleep(_TOKEN_SECONDS)
            reason = "length" if number + 1 == body["max_tokens"] else None
            delta = {"content": f" {one_token_words()[number]}"}
            await _send(response, {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        await _send(response, {"choices": [], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        return response


async def _send(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")


async def main(arguments: Sequence[str]) -> None:
    """Serve until the process is told to end and has completed its streams, or its time is over."""
    port, seconds = int(arguments[0]), float(arguments[1])
    server = SimulatedServe()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.ending.set)
    runner = application(server.handle)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await server.ending.wait()
    deadline = asyncio.get_running_loop().time() + seconds
    while server.running and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(_POLL_SECONDS)
    os._exit(1 if server.running else 0)  # without a word to the clients whose streams still run


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
