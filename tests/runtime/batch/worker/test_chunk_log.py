"""Two writers of one log, at every point of one another, with a lost answer or a writer that is killed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from batch.worker.chunk_log import Chunk, ChunkLog
from batch.worker.rows import RowIdentifier, error_row

IDENTIFIER = RowIdentifier("job", "00000")
LINES = 3
MAX_BYTES = 2**20


def row(ordinal: int, writer: str) -> bytes:
    return error_row(IDENTIFIER, ordinal, f"line-{ordinal}", "endpoint_error", writer)


@dataclass
class Call:
    """A call to the store on its way: nothing has happened of it yet."""

    writer: str
    act: Callable[[], Any]
    answer: asyncio.Future[Any]

    def deliver(self, *, answered: bool = True) -> None:
        result = self.act()
        if self.answer.done():
            return
        if answered:
            self.answer.set_result(result)
        else:
            self.answer.set_exception(ConnectionError("the answer was lost"))


@dataclass
class Network:
    """Between writers and a store that keeps S3's promise: of two that create, one is told no."""

    chunks: dict[int, Chunk] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)

    def store(self, writer: str) -> Store:
        return Store(self, writer)

    def create(self, sequence: int, chunk: Chunk) -> bool:
        return self.chunks.setdefault(sequence, chunk) is chunk


@dataclass
class Store:
    """The store as one writer reaches it."""

    network: Network
    writer: str

    async def count(self) -> int:
        return int(await self._call(lambda: len(self.network.chunks)))

    async def create(self, sequence: int, chunk: Chunk) -> bool:
        return bool(await self._call(lambda: self.network.create(sequence, chunk)))

    async def read(self, sequence: int) -> Chunk:
        found = await self._call(lambda: self.network.chunks[sequence])
        assert isinstance(found, Chunk)
        return found

    def _call(self, act: Callable[[], Any]) -> Awaitable[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.network.calls.append(Call(self.writer, act, answer))
        return answer


async def write(store: Store) -> None:
    """Bring every line that nobody brought, as a worker does; lost answers are met by another try."""
    log = ChunkLog(store, IDENTIFIER, max_bytes=MAX_BYTES)
    await patiently(log.catch_up)
    # All lines are in flight from here on, whatever the other commits meanwhile.
    for ordinal in [ordinal for ordinal in range(LINES) if ordinal not in log.committed]:
        await log.add(ordinal, row(ordinal, store.writer), attempts=1)
        # One of them commits two lines at first, so that entries overlap in part.
        if ordinal > 0 or store.writer == "other":
            await patiently(log.commit)
    await patiently(log.commit)


async def patiently(act: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await act()
        except ConnectionError:
            continue
        return


#: What may happen to a call, beside being answered: at most one of these in a run.
FAULTS = ("answer lost", "writer killed")


@dataclass
class Run:
    """One run by a list of choices; further choices are the first of those there are."""

    choices: list[int]
    widths: list[int] = field(default_factory=list)
    """How many there were each time."""
    killed: str = ""

    def choose(self, options: list[tuple[Call, str]]) -> tuple[Call, str]:
        step = len(self.widths)
        self.widths.append(len(options))
        return options[self.choices[step] if step < len(self.choices) else 0]

    async def go(self) -> Network:
        network = Network()
        tasks = {name: asyncio.create_task(write(network.store(name))) for name in ("one", "other")}
        faults = list(FAULTS)
        while True:
            await settle()
            if not network.calls:
                break
            options = [(call, "answered") for call in network.calls]
            living = [call for call in network.calls if call.writer != self.killed]
            options += [(call, fault) for fault in faults for call in living]
            call, what = self.choose(options)
            if what != "answered":
                faults.clear()
            if what == "writer killed":
                # What it had sent stays on its way, and may arrive at any later time.
                self.killed = call.writer
                tasks[call.writer].cancel()
            else:
                network.calls.remove(call)
                call.deliver(answered=what == "answered")
        done, _ = await asyncio.wait(tasks.values(), timeout=0)
        assert len(done) == len(tasks)
        return network


async def settle() -> None:
    """Let every writer go on to its next call."""
    for _ in range(12):
        await asyncio.sleep(0)


def all_runs() -> Iterator[tuple[Run, Network]]:
    """Go through every run there is."""
    loop = asyncio.new_event_loop()
    choices: list[int] = []
    while True:
        run = Run(choices)
        yield run, loop.run_until_complete(run.go())
        taken = [*choices, *[0] * (len(run.widths) - len(choices))]
        while taken and taken[-1] + 1 >= run.widths[len(taken) - 1]:
            taken.pop()
        if not taken:
            break
        taken[-1] += 1
        choices = taken
    loop.close()


def committed(network: Network) -> Counter[int]:
    assert sorted(network.chunks) == list(range(len(network.chunks))), "entries have no gap"
    return Counter(IDENTIFIER.ordinal(row) for chunk in network.chunks.values() for row in chunk.rows)


@pytest.mark.timeout(600)
def test_no_line_is_lost_or_doubled_however_two_writers_meet() -> None:
    runs = 0
    for run, network in all_runs():
        runs += 1
        assert committed(network) == Counter(range(LINES)), f"choices {run.choices}, killed {run.killed!r}"
    # All of them were gone through, not one over and over.
    assert runs > 1000


def test_attempts_are_counted_once_though_an_answer_is_lost() -> None:
    async def go() -> Network:
        network = Network()
        log = ChunkLog(network.store("one"), IDENTIFIER, max_bytes=MAX_BYTES)
        await log.add(0, row(0, "one"), attempts=3)
        committing = asyncio.create_task(log.commit())
        await settle()
        network.calls.pop().deliver(answered=False)
        with pytest.raises(ConnectionError):
            await committing
        await log.add(1, row(1, "one"), attempts=2)
        committing = asyncio.create_task(log.commit())
        while not committing.done():
            await settle()
            for call in network.calls:
                call.deliver()
            network.calls.clear()
        return network

    network = asyncio.run(go())
    assert committed(network) == Counter(range(2))
    assert sum(chunk.attempts for chunk in network.chunks.values()) == 5


def test_results_wait_while_too_many_are_not_committed() -> None:
    async def go() -> None:
        network = Network()
        log = ChunkLog(network.store("one"), IDENTIFIER, max_bytes=1)
        await log.add(0, row(0, "one"), attempts=1)
        adding = asyncio.create_task(log.add(1, row(1, "one"), attempts=1))
        await settle()
        assert not adding.done()
        committing = asyncio.create_task(log.commit())
        await settle()
        network.calls.pop().deliver()
        await asyncio.wait_for(adding, 10)
        assert log.waiting_bytes == len(row(1, "one"))
        committing.cancel()

    asyncio.run(go())
