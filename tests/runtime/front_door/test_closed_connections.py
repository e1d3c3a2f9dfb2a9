"""Envoy closes the connection of a question whose caller has gone."""

from __future__ import annotations

import asyncio

from front_door.door_metrics import DoorMetrics
from front_door.http_server import HttpConnection, Pages


class Closed(asyncio.Transport):
    """As a closed transport of uvloop, which is that of the policy process."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        raise RuntimeError(f"unable to perform operation; the handler is closed: {data!r}")


def test_nothing_is_written_to_a_connection_that_is_closed() -> None:
    """Red if each caller who goes away leaves the trace of an error."""
    connection = HttpConnection(None, Pages(DoorMetrics(), lambda: True, set()))
    connection.connection_made(Closed())
    connection.data_received(b"GET /ready HTTP/1.1\r\n\r\n")
