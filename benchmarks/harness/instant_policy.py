"""Answers Envoy's questions at once, with no decision: the least that a policy in a process of its own costs.

It listens at the Unix socket of its first argument, and answers the target of its second.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop

from inference_contracts import door_headers


class _Connection(asyncio.Protocol):
    """A connection of Envoy, with one question after the other."""

    def __init__(self, answer: bytes) -> None:
        self._answer, self._read = answer, b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        if self._read.endswith(b"\r\n\r\n"):
            self._read = b""
            self._transport.write(self._answer)


async def _serve(socket: str, target: str) -> None:
    answer = f"HTTP/1.1 200 -\r\n{door_headers.TARGET}: {target}\r\ncontent-length: 0\r\n\r\n".encode()
    server = await asyncio.get_running_loop().create_unix_server(lambda: _Connection(answer), socket)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(*sys.argv[1:3]))
