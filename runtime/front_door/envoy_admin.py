"""Asks Envoy's administration."""

from __future__ import annotations

import asyncio


async def ask_envoy(place: str, method: str, path: str) -> bytes:
    """Return the body of an answer of Envoy's administration.

    place: Path of a Unix socket, or ``host:port``.
    Raises OSError if it does not answer with 200.
    """
    if place.startswith("/"):
        reader, writer = await asyncio.open_unix_connection(place)
    else:
        host, _, port = place.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"{method} {path} HTTP/1.0\r\nhost: envoy\r\n\r\n".encode())
        async with asyncio.timeout(5):
            answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0] + b" ":
        raise OSError(f"Envoy's administration answers {head[:100]!r} to {path}")
    return body
