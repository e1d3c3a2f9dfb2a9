"""The least that sends a file's bodies from Python: aiohttp, a number of loops, no promise of any kind.

`python -m benchmarks.harness.batch.bare_loop FILE ADDRESS IN_FLIGHT` prints the processor seconds that it
took, without its start.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import uvloop


async def _send_all(path: Path, address: str, in_flight: int) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        with path.open("rb") as file:
            bodies = _bodies(file)
            await asyncio.gather(*(_send(session, address, bodies) for _ in range(in_flight)))


async def _send(session: aiohttp.ClientSession, address: str, bodies: Iterator[bytes]) -> None:
    for body in bodies:
        headers = {"Content-Type": "application/json"}
        async with session.post(f"{address}/v1/chat/completions", data=body, headers=headers) as answer:
            await answer.read()


def _bodies(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield json.dumps(json.loads(line)["body"]).encode()


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    start = _processor_seconds()
    uvloop.run(_send_all(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
    print(_processor_seconds() - start)
