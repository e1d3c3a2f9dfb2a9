"""Gateways between a load and a model that answers without work: bare Envoy, the front door, others.

Each way to the model is a port and the processes that it consists of. Their processor time is that of their
threads in ``/proc/PID/task/*/schedstat``, in nanoseconds
(https://docs.kernel.org/scheduler/sched-stats.html).
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

_LOOPBACK = "127.0.0.1"
_CHAT = "/v1/chat/completions"
_END = b"0\r\n\r\n"
PROMPT_TOKENS = 12
_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class MeasuredWay:
    """A way to the model."""

    name: str
    port: int
    headers: tuple[tuple[str, str], ...]
    """`port`, `headers`: Where callers ask, and what they send besides the body."""
    processes: tuple[int, ...]
    """Identifiers of the processes on the way, without the model."""

    def processor_seconds(self) -> float:
        """Return the processor time of all its processes until now."""
        return sum(_processor_seconds(each) for each in self.processes)

    def memory_mib(self) -> float:
        """Return the resident memory of all its processes."""
        return sum(psutil.Process(each).memory_info().rss for each in self.processes) / 2**20


def _processor_seconds(process: int) -> float:
    files = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in files) / 1e9


@dataclass(frozen=True)
class Taken:
    """What a load measured."""

    seconds: tuple[float, ...]
    """Time of each request that was answered with 200, in order of their starts."""
    failed: int
    """Requests with another answer, or none."""
    chunks: int = 0
    """Chunks of streams that arrived."""

    def quantile(self, share: float) -> float:
        """Return the time within which a share of the requests was answered, in seconds."""
        return statistics.quantiles(self.seconds, n=1000, method="inclusive")[round(share * 1000) - 1]


@contextmanager
def model_server(chunk_seconds: float, chunks: int) -> Iterator[int]:
    """Run a model in a process of its own, and yield its port.

    chunk_seconds: Time between two chunks of a stream.
    chunks: Chunks of a stream, and tokens of every answer.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, chunk_seconds, chunks), daemon=True)
    process.start()
    there.close()  # so that a process that dies leaves nobody waiting
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def _serve(ready: Connection, chunk_seconds: float, chunks: int) -> None:
    asyncio.run(_answer(ready, chunk_seconds, chunks))


async def _answer(ready: Connection, chunk_seconds: float, chunks: int) -> None:
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": chunks, "total_tokens": 0}
    message = {"role": "assistant", "content": "yes"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    plain = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    whole = json.dumps({**plain, "choices": [choice], "usage": usage}).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(whole)
    streamed = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    events = [_event(number) for number in range(1, chunks + 1)]

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while body := await _body(reader):
                if not body.get("stream"):
                    writer.write(head + whole)
                    continue
                writer.write(streamed)
                for event in events:
                    await asyncio.sleep(chunk_seconds)
                    writer.write(event)
                    await writer.drain()  # raises once the caller has gone away
                writer.write(b"e\r\ndata: [DONE]\n\n\r\n" + _END)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connection, _LOOPBACK, 0, backlog=8192, limit=2**20)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _body(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Read a request with a length. An empty mapping at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return {}
    content = await reader.readexactly(int(_header(head, b"content-length") or 0))
    found: dict[str, Any] = json.loads(content) if content else {"stream": False}
    return found


def _event(number: int) -> bytes:
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": number, "total_tokens": 0}
    delta = {"index": 0, "delta": {"content": "word "}, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    data = b"data: " + json.dumps({**chunk, "choices": [delta], "usage": usage}).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


def requests_at(way: MeasuredWay, per_second: float, seconds: float) -> Taken:
    """Send short requests at a steady rate, also while earlier ones are open (an open loop).

    per_second: Requests per second.
    seconds: How long.
    """
    taken: Taken = in_own_process(_short_requests, way, per_second, seconds)
    return taken


def streams_at_once(way: MeasuredWay, number: int) -> Taken:
    """Read streams at the same time, from their start to their end.

    number: How many.
    """
    taken: Taken = in_own_process(_streams, way, number, 0.0)
    return taken


@dataclass
class LoneRequest:
    """One request on a connection of its own, and how far it came."""

    step: str = "connecting"
    status: str = ""
    request_id: str = ""
    """`status`, `request_id`: Of the answer's head, once it has come."""
    body: str = ""
    """Body of an answer with another status than 200."""
    error: str = ""
    """What ended it before its end."""
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    """Time that it took."""

    @property
    def is_good(self) -> bool:
        """Whether all that was asked for has come."""
        return not self.error and self.status == "200"


async def ask_once(way: MeasuredWay, *, stream: bool, cut: bool = False) -> LoneRequest:
    """Ask on a new connection.

    cut: Go away after the first chunk of a stream.
    """
    asked = LoneRequest()
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            reader, writer = await asyncio.open_connection(_LOOPBACK, way.port, limit=2**20)
            asked.step = "waiting for the answer"
            writer.write(request_bytes(way, stream=stream))
            head = await reader.readuntil(b"\r\n\r\n")
            asked.step, asked.status = "reading the body", head[9:12].decode()
            asked.request_id = (_header(head, b"x-request-id") or b"").decode()
            if asked.status != "200":
                asked.body = (await _content(reader, head)).decode()
            elif cut:
                await reader.readuntil(b"\n\n")
            else:
                await _content(reader, head)
            asked.step = "at the end"
            if cut:
                writer.transport.abort()
            else:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        asked.error = repr(error)
    asked.seconds = time.monotonic() - asked.started
    return asked


def in_own_process(load: Any, way: MeasuredWay, first: float, second: float) -> Any:
    """Return what a load measures in a process of its own.

    load: Function of the way and of the two numbers.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_run, args=(there, load, way, first, second), daemon=True)
    process.start()
    there.close()  # so that a process that dies leaves nobody waiting
    taken = here.recv()
    process.join()
    return taken


def _run(result: Connection, load: Any, way: MeasuredWay, first: float, second: float) -> None:
    result.send(asyncio.run(load(way, first, second)))


def request_bytes(way: MeasuredWay, *, stream: bool) -> bytes:
    """Return a request with a prompt of 600 characters."""
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello " * 100}]}
    body |= {"max_tokens": 64, "stream": stream}
    content = json.dumps(body).encode()
    headers = "".join(f"{name}: {value}\r\n" for name, value in way.headers)
    head = f"POST {_CHAT} HTTP/1.1\r\nhost: api.example.com\r\ncontent-type: application/json\r\n{headers}"
    return f"{head}content-length: {len(content)}\r\n\r\n".encode() + content


async def _short_requests(way: MeasuredWay, per_second: float, seconds: float) -> Taken:
    request, idle = request_bytes(way, stream=False), list[Any]()
    taken: list[float] = []
    failed = 0

    async def ask() -> None:
        nonlocal failed
        start = time.perf_counter()
        try:
            reader, writer = idle.pop() if idle else await asyncio.open_connection(_LOOPBACK, way.port)
            writer.write(request)
            status = await _whole_answer(reader)
        except (OSError, asyncio.IncompleteReadError):
            failed += 1
            return
        if status != b"200":
            failed += 1
        taken.append(time.perf_counter() - start)
        idle.append((reader, writer))

    start, tasks = time.perf_counter(), []
    for number in range(round(per_second * seconds)):
        await asyncio.sleep(max(0.0, start + number / per_second - time.perf_counter()))
        tasks.append(asyncio.create_task(ask()))
    await asyncio.wait_for(asyncio.gather(*tasks), _WAIT_SECONDS)
    return Taken(tuple(taken), failed)


async def _whole_answer(reader: asyncio.StreamReader) -> bytes:
    """Read an answer, and return its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    await _content(reader, head)
    return head[9:12]


async def _content(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """Read what follows the head of an answer."""
    length = _header(head, b"content-length")
    return await (reader.readuntil(_END) if length is None else reader.readexactly(int(length)))


def _header(head: bytes, name: bytes) -> bytes | None:
    lines = [line for line in head.split(b"\r\n") if line.lower().startswith(name + b":")]
    return lines[0].partition(b":")[2].strip() if lines else None


async def _streams(way: MeasuredWay, number: float, _: float) -> Taken:
    request, chunks, failed = request_bytes(way, stream=True), 0, 0
    taken: list[float] = []

    async def read() -> None:
        nonlocal chunks, failed
        start = time.perf_counter()
        try:
            reader, writer = await asyncio.open_connection(_LOOPBACK, way.port, limit=2**20)
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            content = await reader.readuntil(_END)
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            failed += 1
            return
        if head[9:12] != b"200" or b"[DONE]" not in content:
            failed += 1
            return
        chunks += content.count(b"data: {")
        taken.append(time.perf_counter() - start)

    tasks: Sequence[asyncio.Task[None]] = []
    for each in range(int(number)):
        tasks = [*tasks, asyncio.create_task(read())]
        if each % 50 == 0:
            await asyncio.sleep(0.01)
    await asyncio.wait_for(asyncio.gather(*tasks), _WAIT_SECONDS)
    return Taken(tuple(taken), failed, chunks)
