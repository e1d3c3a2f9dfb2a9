"""Asks Envoy's administration."""

from __future__ import annotations

import asyncio
import http.client
import socket
from typing import Final

_SECONDS: Final = 5.0
_OK: Final = 200


class _UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("envoy", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(self._path)


async def ask_envoy(place: str, method: str, path: str) -> bytes:
    """Return the body of an answer of Envoy's administration.

    place: Path of a Unix socket, or ``host:port``.
    Raises OSError if it does not answer with 200.
    """
    return await asyncio.to_thread(_ask, place, method, path)


def _ask(place: str, method: str, path: str) -> bytes:
    if place.startswith("/"):
        connection: http.client.HTTPConnection = _UnixConnection(place)
    else:
        host, _, port = place.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=_SECONDS)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
    except http.client.HTTPException as error:
        raise OSError(f"Envoy's administration answers {path} wrongly: {error!r}") from error
    finally:
        connection.close()
    if answer.status != _OK:
        raise OSError(f"Envoy's administration answers {answer.status} to {path}")
    return body
