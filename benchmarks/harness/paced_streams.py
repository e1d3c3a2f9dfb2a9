"""Streams at a steady pace: what a chunk costs while all of them are open, and streams that are cut."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.harness.measured_door import MeasuredWay, in_own_process, request_bytes

_LOOPBACK: Final = "127.0.0.1"
_CHUNK: Final = b"data: {"
_DONE: Final = b"[DONE]"
_MOST_SECONDS: Final = 120.0
#: Streams that have begun before the first processor time is read have this many chunks.
_BEGUN: Final = 2


@dataclass(frozen=True)
class PacedChunks:
    """What streams cost between the last one's second chunk and the first one's end."""

    chunks: int
    processor_seconds: float
    failed: int

    @property
    def microseconds(self) -> float:
        """Processor time of a chunk."""
        return self.processor_seconds / self.chunks * 1e6


def paced_chunks(way: MeasuredWay, streams: int, seconds: float) -> PacedChunks:
    """Read streams that begin one after the other, all of them to their end.

    streams: How many.
    seconds: In which they begin.
    """
    found: PacedChunks = in_own_process(_paced, way, streams, seconds)
    return found


def cut_streams(way: MeasuredWay, streams: int, chunks: int) -> int:
    """Close the connections of streams after some chunks, and return how many chunks came in all.

    streams: How many. They begin at the same time.
    chunks: Of each.
    """
    found: int = in_own_process(_cut, way, streams, chunks)
    return found


async def _opened(way: MeasuredWay) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(_LOOPBACK, way.port, limit=2**20)
    writer.write(request_bytes(way, stream=True))
    head = await reader.readuntil(b"\r\n\r\n")
    if head[9:12] != b"200":
        raise ConnectionError(head)
    return reader, writer


async def _paced(way: MeasuredWay, streams: float, seconds: float) -> PacedChunks:
    got = [0] * int(streams)
    waiting, failed = len(got), 0
    begin, end = _Moment(), _Moment()

    def note(moment: _Moment) -> None:
        if not moment.noted:
            moment.noted, moment.chunks, moment.processor = True, sum(got), way.processor_seconds()

    async def read(number: int) -> None:
        nonlocal waiting, failed
        await asyncio.sleep(number * seconds / streams)
        try:
            reader, writer = await _opened(way)
            while line := await reader.readline():
                if line.startswith(_CHUNK):
                    got[number] += 1
                    waiting -= got[number] == _BEGUN
                    if not waiting:
                        note(begin)
                elif _DONE in line:
                    note(end)
                    writer.close()
                    return
            failed += 1
        except OSError:
            failed += 1

    await asyncio.wait_for(asyncio.gather(*map(read, range(len(got)))), _MOST_SECONDS)
    return PacedChunks(end.chunks - begin.chunks, end.processor - begin.processor, failed)


@dataclass
class _Moment:
    noted: bool = False
    chunks: int = 0
    processor: float = 0.0


async def _cut(way: MeasuredWay, streams: float, chunks: float) -> int:
    async def read(_: Any) -> int:
        reader, writer = await _opened(way)
        got = 0
        while got < chunks:
            got += (await reader.readline()).startswith(_CHUNK)
        writer.transport.abort()
        return got

    return sum(await asyncio.wait_for(asyncio.gather(*map(read, range(int(streams)))), _MOST_SECONDS))
