"""A model's frontend as the front door sees one: whole answers, streams and errors of OpenAI's API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

#: Usage of every answer.
INPUT_TOKENS, OUTPUT_TOKENS = 11, 4
WORDS = ("one", " two", " three", " four")


class StandInModel:
    """A server on a loopback port. Use it as a context manager."""

    def __init__(self) -> None:
        #: Bodies that it got.
        self.seen: list[dict[str, Any]] = []
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.port: int = self._server.server_port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: StandInModel

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.model.seen.append(body)
        if "too long" in json.dumps(body):
            # As Dynamo 1.6.1 and vLLM answer a prompt that is too long.
            error = {
                "message": "maximum context length is 4096 tokens",
                "type": "BadRequestError",
                "code": 400,
            }
            self._answer(400, json.dumps({"error": error}).encode(), "application/json")
        elif body.get("stream"):
            self._answer(200, b"".join(_events(body)), "text/event-stream")
        elif self.path.endswith("/embeddings"):
            data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
            usage = {"prompt_tokens": INPUT_TOKENS, "total_tokens": INPUT_TOKENS}
            document = {"object": "list", "model": body["model"], "data": data, "usage": usage}
            self._answer(200, json.dumps(document).encode(), "application/json")
        else:
            message = {"role": "assistant", "content": "".join(WORDS)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            document = _document(body, "chat.completion", choices=[choice], usage=_usage())
            self._answer(200, json.dumps(document).encode(), "application/json")

    def _answer(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _usage(output: int = OUTPUT_TOKENS) -> dict[str, int]:
    return {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": output,
        "total_tokens": INPUT_TOKENS + output,
    }


def _document(body: dict[str, Any], kind: str, **facts: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": body["model"], **facts}


def _events(body: dict[str, Any]) -> Iterator[bytes]:
    """Yield the events of a stream, each with the usage until then if the request asks for it."""
    options = body.get("stream_options") or {}
    for number, word in enumerate(WORDS, 1):
        choice = {"index": 0, "delta": {"content": word}, "finish_reason": None}
        usage = {"usage": _usage(number)} if options.get("continuous_usage_stats") else {}
        yield _event(_document(body, "chat.completion.chunk", choices=[choice], **usage))
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    yield _event(_document(body, "chat.completion.chunk", choices=[last]))
    if options.get("include_usage"):
        yield _event(_document(body, "chat.completion.chunk", choices=[], usage=_usage()))
    yield b"data: [DONE]\n\n"


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"
