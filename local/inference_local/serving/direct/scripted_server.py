"""A scripted server of the OpenAI API, in place of an engine that cannot run on this machine.

A separate program: ``python -m inference_local.serving.direct.scripted_server SETTINGS``, with
the fields of `ScriptedSettings` as JSON. It computes nothing: every answer has the same words at the same
pace, as many as the request allows. A token is a word. If a request demands JSON, the answer is a value of
its schema. In place of a model for images, its answers are `scripted_images`. It counts requests in the
metrics of the engine that it replaces.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from aiohttp import web

from inference_contracts.batch_body_fields import IMAGES_PATH
from inference_local.serving.direct.scripted_images import (
    ImageRequestError,
    image_answer,
    read_image_request,
)
from inference_local.serving.structured_answers import NoExampleError, structured_tokens

_WORDS = ("this", "answer", "is", "scripted", "and", "says", "nothing", "about", "the", "model")
_SECONDS_PER_TOKEN = 0.01
_SECONDS_PER_IMAGE = 0.2
_LIMITS = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True, slots=True)
class ScriptedSettings:
    """Where a scripted server listens, and what it reports."""

    address: str
    port: int
    """`address`, `port`: Where it listens."""
    model: str
    answer_tokens: int
    """Words of an answer if the request has no limit."""
    running: str
    waiting: str
    requests: str
    """`running`, `waiting`, `requests`: Metrics of the requests in progress, of those that wait, and of those
    that ended."""
    most_pixels: int | None = None
    """Most pixels of an image. None if the model writes text."""
    aliases: tuple[str, ...] = ()
    """Further names of the model in requests."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the model."""
        return (self.model, *self.aliases)

    def as_text(self) -> str:
        """Return the argument of the program."""
        return json.dumps(asdict(self))


class _UnscriptedError(Exception):
    """A request that no script answers.

    param: The field that asks for it.
    """

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message)
        self.param = param


class ScriptedServer:
    """Answers requests with words of a script.

    settings: What it serves.
    """

    def __init__(self, settings: ScriptedSettings) -> None:
        self._settings = settings
        self._running = 0
        self._ended = 0

    def application(self) -> web.Application:
        """Return the server's paths."""
        paths = web.Application()
        paths.router.add_get("/health", self._health)
        paths.router.add_get("/metrics", self._metrics)
        paths.router.add_get("/v1/models", self._models)
        if self._settings.most_pixels is None:
            paths.router.add_post("/v1/chat/completions", self._answer)
            paths.router.add_post("/v1/completions", self._answer)
        else:
            paths.router.add_post(IMAGES_PATH, self._make_images)
        return paths

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _metrics(self, _: web.Request) -> web.Response:
        values = {
            self._settings.running: self._running,
            self._settings.waiting: 0,
            self._settings.requests: self._ended,
        }
        return web.Response(text="".join(f"{name} {value}\n" for name, value in values.items()))

    async def _models(self, _: web.Request) -> web.Response:
        each = {"object": "model", "created": 0, "owned_by": "scripted"}
        listed = [{"id": name, **each} for name in self._settings.names]
        return web.json_response({"object": "list", "data": listed})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            asked = json.loads(await request.read())
        except ValueError as error:
            return _refused(400, str(error))
        if not isinstance(asked, dict) or asked.get("model") not in self._settings.names:
            return _refused(404, f"the only model is '{self._settings.model}'", "model")
        try:
            script, reason = self._script(asked)
        except _UnscriptedError as error:
            return _refused(400, str(error), error.param)
        self._running += 1
        try:
            if asked.get("stream"):
                return await self._stream(request, asked, script, reason)
            await asyncio.sleep(_SECONDS_PER_TOKEN * len(script))
            text = "".join(script).strip()
            return web.json_response({**_piece(request, asked, text, reason), **_usage(asked, script)})
        finally:
            self._running -= 1
            self._ended += 1

    async def _make_images(self, request: web.Request) -> web.Response:
        settings = self._settings
        try:
            asked = read_image_request(
                await request.read(), model=settings.model, most_pixels=settings.most_pixels
            )
        except ImageRequestError as error:
            return web.json_response(error.body, status=400)
        self._running += 1
        try:
            await asyncio.sleep(_SECONDS_PER_IMAGE * asked.n)
            return web.json_response(await asyncio.to_thread(image_answer, asked))
        finally:
            self._running -= 1
            self._ended += 1

    async def _stream(
        self, request: web.Request, asked: dict[str, Any], script: Sequence[str], reason: str
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for token in script:
            await asyncio.sleep(_SECONDS_PER_TOKEN)
            await response.write(_event(_piece(request, asked, token, None)))
        await response.write(_event(_piece(request, asked, "", reason)))
        if (asked.get("stream_options") or {}).get("include_usage"):
            await response.write(
                _event({**_piece(request, asked, "", None), "choices": [], **_usage(asked, script)})
            )
        await response.write(b"data: [DONE]\n\n")
        return response

    def _script(self, asked: dict[str, Any]) -> tuple[Sequence[str], str]:
        """Return the tokens of the answer, and why it ends. Raises _UnscriptedError if there is no script."""
        given = [asked[name] for name in _LIMITS if isinstance(asked.get(name), int)]
        limit = given[0] if given else self._settings.answer_tokens
        if asked.get("n") not in (None, 1):
            raise _UnscriptedError(
                "n", "the scripted server gives one answer per request; send several requests"
            )
        if asked.get("tool_choice") not in (None, "auto", "none"):
            raise _UnscriptedError(
                "tool_choice",
                "the scripted server calls no tool; send 'auto', or use an engine that Dynamo runs",
            )
        wanted = asked.get("response_format") or {"type": "text"}
        try:
            if wanted["type"] == "text":
                return [f"{_WORDS[index % len(_WORDS)]} " for index in range(limit)], "length"
            schema = (
                wanted["json_schema"]["schema"] if wanted["type"] == "json_schema" else {"type": "object"}
            )
            tokens = structured_tokens({"json": schema}, limit)
        except (KeyError, TypeError) as error:
            raise _UnscriptedError("response_format", f"it has no {error}") from error
        except NoExampleError as error:
            raise _UnscriptedError("response_format", str(error)) from error
        return tokens[:limit], "stop" if len(tokens) <= limit else "length"


def _piece(request: web.Request, asked: dict[str, Any], text: str, reason: str | None) -> dict[str, Any]:
    """Return an answer, or a part of one, in the form of the path that was asked."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
    kind = "text_completion"
    if request.path.startswith("/v1/chat/"):
        part = "delta" if asked.get("stream") else "message"
        choice[part] = {"role": "assistant", "content": text}
        kind = "chat.completion.chunk" if asked.get("stream") else "chat.completion"
    else:
        choice["text"] = text
    return {
        "id": "scripted",
        "object": kind,
        "created": int(time.time()),
        "model": asked["model"],
        "choices": [choice],
    }


def _usage(asked: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    prompt = len(json.dumps(asked.get("messages") or asked.get("prompt") or "").split())
    return {
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": len(words),
            "total_tokens": prompt + len(words),
        }
    }


def _event(content: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(content)}\n\n".encode()


def _refused(status: int, message: str, param: str | None = None) -> web.Response:
    """Return an error in the format of the OpenAI API."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
    return web.json_response({"error": error}, status=status)


async def main(arguments: Sequence[str]) -> None:
    """Serve until the process ends.

    arguments: The settings as JSON.
    """
    settings = ScriptedSettings(**json.loads(arguments[0]))
    runner = web.AppRunner(ScriptedServer(settings).application(), access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, settings.address, settings.port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
