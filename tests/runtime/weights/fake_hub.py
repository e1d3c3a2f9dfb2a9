"""The Hugging Face Hub as the mirror meets it, on loopback, with its faults."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from dataclasses import dataclass, field

from aiohttp import web

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_PIECE_BYTES = 256 * 1024


@dataclass
class FakeModel:
    """A repository and how the Hub behaves when it is asked for it."""

    files: dict[str, bytes]
    sent_instead: dict[str, bytes] = field(default_factory=dict)
    """Bytes that are sent instead of the ones that the tree promises."""
    cuts: dict[str, int] = field(default_factory=dict)
    """Connections on which a file is cut after this many bytes, before one is let through."""
    cut_after_bytes: int = 0
    short: dict[str, int] = field(default_factory=dict)
    """Answers that end after these bytes as if there were no more."""
    ignored_ranges: dict[str, int] = field(default_factory=dict)
    """Answers with the whole file to a request for a part of it."""
    busy: list[int] = field(default_factory=list)
    """Answers of 429 and 503 before the first proper one."""
    refusal: tuple[int, str] | None = None
    """Status and the Hub's error code with which everything is refused, or files alone."""
    is_listed: bool = False
    token: str | None = None
    """The token that reads files; they are listed without it, as those of a gated model are."""
    withheld: set[str] = field(default_factory=set)
    """Files whose bytes do not come, until they are taken out."""
    asked: list[tuple[str, int]] = field(default_factory=list)
    """Paths in the order in which they were asked for, with the first byte of each."""

    def tree(self) -> list[dict[str, object]]:
        return [_entry(path, content) for path, content in self.files.items()]


class FakeHub:
    """Serves models by repository; a context manager."""

    def __init__(self) -> None:
        self.models: dict[str, FakeModel] = {}
        self.endpoint = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> FakeHub:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        application = web.Application()
        application.router.add_get("/api/models/{owner}/{name}/revision/{revision}", self._info)
        application.router.add_get("/api/models/{owner}/{name}/tree/{revision}", self._tree)
        application.router.add_post("/api/models/{owner}/{name}/paths-info/{revision}", self._paths)
        application.router.add_get("/{owner}/{name}/resolve/{revision}/{path:.*}", self._resolve)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self.endpoint = f"http://127.0.0.1:{port}"

    def _model(self, request: web.Request) -> FakeModel:
        """Return the model asked for, or refuse as the Hub does."""
        model = self.models.get(f"{request.match_info['owner']}/{request.match_info['name']}")
        if model is None:
            raise web.HTTPNotFound(headers={"X-Error-Code": "RepoNotFound"})
        if model.busy:
            raise _error(model.busy.pop(0), {"Retry-After": "0"})
        if model.refusal and not model.is_listed:
            raise _refused(*model.refusal)
        if request.match_info["revision"] != COMMIT:
            raise web.HTTPNotFound(headers={"X-Error-Code": "RevisionNotFound"})
        return model

    async def _info(self, request: web.Request) -> web.Response:
        model = self._model(request)
        siblings = [{"rfilename": path} for path in model.files]
        return web.json_response({"id": "model", "sha": COMMIT, "siblings": siblings})

    async def _tree(self, request: web.Request) -> web.Response:
        return web.json_response(self._model(request).tree())

    async def _paths(self, request: web.Request) -> web.Response:
        wanted = (await request.post()).getall("paths")
        return web.json_response([entry for entry in self._model(request).tree() if entry["path"] in wanted])

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        model, path = self._model(request), request.match_info["path"]
        if model.refusal:
            raise _refused(*model.refusal)
        if model.token and request.headers.get("Authorization") != f"Bearer {model.token}":
            raise _refused(401, "GatedRepo")
        content = model.sent_instead.get(path, model.files[path])
        first = request.http_range.start or 0
        model.asked.append((path, first))
        if first and model.ignored_ranges.get(path, 0) > 0:
            model.ignored_ranges[path] -= 1
            first = 0
        if model.short.get(path, 0) > 0:
            model.short[path] -= 1
            content = content[: first + model.cut_after_bytes]
        if first and first >= len(content):
            # RFC 9110, 15.5.17, as S3 and CloudFront answer behind the Hub.
            raise web.HTTPRequestRangeNotSatisfiable
        response = web.StreamResponse(status=206 if first else 200)
        response.content_length = len(content) - first
        await response.prepare(request)
        is_cut = model.cuts.get(path, 0) > 0
        if is_cut:
            model.cuts[path] -= 1
            content = content[: first + model.cut_after_bytes]
        for begin in range(first, len(content), _PIECE_BYTES):
            while path in model.withheld:
                await asyncio.sleep(0.02)
            await response.write(content[begin : begin + _PIECE_BYTES])
        if is_cut and request.transport:
            request.transport.abort()
        return response


def _entry(path: str, content: bytes) -> dict[str, object]:
    """Return a file as the Hub's tree lists it: safetensors are in large file storage."""
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(content), "oid": blob}
    if path.endswith(".safetensors"):
        digest = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 134}
    return entry


def _refused(status: int, code: str) -> web.HTTPException:
    """Return a refusal with the Hub's own error code, where it has one."""
    return _error(status, {"X-Error-Code": code} if code else {})


def _error(status: int, headers: dict[str, str]) -> web.HTTPException:
    """Return an answer of any status."""

    class Refusal(web.HTTPException):
        status_code = status

    return Refusal(headers=headers)
