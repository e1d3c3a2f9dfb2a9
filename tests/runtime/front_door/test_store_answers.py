"""A process that has stood still takes the answers that have come meanwhile."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from pathlib import Path

import pytest
import uvloop
from front_door.store import ANSWER_SECONDS, LedgerStore, StorePlace

pytestmark = pytest.mark.clock


def answer(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        while connection.recv(1000):
            connection.sendall(b"+PONG\r\n")


class Stall(asyncio.Protocol):
    """Stands still for longer than a caller waits for the store."""

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - whatever comes
        time.sleep(ANSWER_SECONDS + 0.2)


def test_an_answer_that_came_while_the_process_stood_still_counts(tmp_path: Path) -> None:
    """uvloop runs timers before it reads. Red if a busy machine makes a store that answers count as lost."""
    address = str(tmp_path / "store.sock")

    async def ask() -> object:
        store = LedgerStore(StorePlace(address, 0), ())
        running = asyncio.create_task(store.run())
        while not store.has_answered:
            await asyncio.sleep(0.01)
        near, far = socket.socketpair()
        with far:
            transport, _ = await asyncio.get_running_loop().create_connection(Stall, sock=near)
            asked = asyncio.create_task(store.ask("key", b"PING"))
            for _ in range(3):  # the command is sent in the turn after the one that asks
                await asyncio.sleep(0)
            far.sendall(b"x")
            try:
                return await asked
            finally:
                running.cancel()
                transport.close()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        thread = threading.Thread(target=answer, args=(listener,), daemon=True)
        thread.start()
        assert uvloop.run(ask()) == b"PONG"
        thread.join()
