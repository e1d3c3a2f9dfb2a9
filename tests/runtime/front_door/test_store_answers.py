"""A process that has stood still does not count a store that answers as lost."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from front_door import store
from front_door.store import ANSWER_SECONDS, LedgerStore, StoreConnection, StoreLostError, StorePlace

_PLACE = StorePlace("/no/such/store.sock", 0)


class Clock:
    """`time.monotonic` of the module."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Sink:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        """Close it: nobody looks."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(store, "time", fake)
    return fake


def connected() -> StoreConnection:
    connection = StoreConnection()
    connection.connection_made(cast(Any, Sink()))
    return connection


def test_answers_that_came_meanwhile_are_read_before_any_counts_as_lost(clock: Clock) -> None:
    """uvloop runs timers before it reads, so what has come is read in the turn after that of the timer."""

    async def ask() -> object:
        connection = connected()
        ledger = LedgerStore(_PLACE, ())
        ledger._nodes[_PLACE.host, _PLACE.port] = connection
        asked = connection.ask(b"PING")
        await asyncio.sleep(0)  # it is sent at the end of the turn
        clock.now += ANSWER_SECONDS + 0.2
        running = asyncio.create_task(ledger.run())
        asyncio.get_running_loop().call_soon(connection.data_received, b"+PONG\r\n")
        try:
            return await asked
        finally:
            running.cancel()

    assert asyncio.run(ask()) == b"PONG"


def test_what_waits_in_the_process_is_not_late(clock: Clock) -> None:
    """The time of an answer begins when the command is sent, not when it is asked for."""

    async def ask() -> None:
        connection = connected()
        asked = connection.ask(b"PING")
        clock.now += ANSWER_SECONDS + 0.2  # it stands still before it has sent
        connection.check(clock.now)
        await asyncio.sleep(0)
        connection.check(clock.now)
        assert not asked.done()
        clock.now += ANSWER_SECONDS
        connection.check(clock.now)
        with pytest.raises(StoreLostError, match="does not answer in time"):
            await asked

    asyncio.run(ask())


def test_a_late_answer_goes_to_nobody_else(clock: Clock) -> None:
    async def ask() -> None:
        connection = connected()
        late = connection.ask(b"GET", "a")
        await asyncio.sleep(0)
        clock.now += ANSWER_SECONDS
        connection.check(clock.now)
        assert isinstance(late.exception(), StoreLostError)
        prompt = connection.ask(b"GET", "b")
        await asyncio.sleep(0)
        connection.data_received(b"+A\r\n+B\r\n")
        assert await prompt == b"B"
        unsent = connection.ask(b"GET", "c")
        connection.connection_lost(None)
        assert isinstance(unsent.exception(), StoreLostError)
        connection.check(clock.now)

    asyncio.run(ask())
