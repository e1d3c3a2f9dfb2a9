"""The access log is read to its end, over rotations and restarts, and no line is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from front_door import log_follower
from front_door.log_follower import LogFollower, LogLine

pytestmark = pytest.mark.clock


class Reader:
    """Follows a log in this process, as one that may be killed between any two steps."""

    def __init__(self, folder: Path) -> None:
        self.file, self.state = folder / "access.log", folder / "position"
        self.read: list[tuple[int, bytes]] = []
        self.undelivered = 0
        self.reopened = 0

    async def settle(self, lines: list[LogLine], _: object) -> None:
        self.read += [(line.end, line.content) for line in lines]

    def finished(self, settled: int) -> int:
        return min(settled, self.undelivered) if self.undelivered else settled

    async def reopen(self) -> None:
        self.reopened += 1

    def contents(self) -> list[bytes]:
        return [content for _, content in self.read]

    def follow(self, until: Callable[[], bool], *steps: Callable[[], object]) -> None:
        """Follow until something holds, doing the steps one after the other meanwhile."""

        async def whole() -> None:
            follower = LogFollower(self.file, self.state, self.settle, self.finished, self.reopen)
            running = asyncio.create_task(follower.run())
            for step in steps:
                step()
                await asyncio.sleep(0.05)
            async with asyncio.timeout(10):
                while not until():
                    await asyncio.sleep(0.01)
            running.cancel()

        asyncio.run(whole())


def write(file: Path, *lines: str) -> None:
    with file.open("a") as out:
        out.writelines(lines)


def test_lines_are_read_once_each_and_only_when_they_are_whole(tmp_path: Path) -> None:
    """Red if a half line is taken, or the position after a restart is wrong by a line."""
    reader = Reader(tmp_path)
    write(reader.file, "one\n", "tw")
    reader.follow(lambda: len(reader.read) == 2, lambda: write(reader.file, "o\n"))
    write(reader.file, "three\n")
    reader.follow(lambda: len(reader.read) == 3)
    assert reader.contents() == [b"one", b"two", b"three"]
    positions = [position for position, _ in reader.read]
    assert positions == sorted(set(positions))


def test_what_is_not_delivered_is_read_again_with_the_same_positions(tmp_path: Path) -> None:
    """Red if a usage record is lost with the process, or a line is charged twice."""
    reader = Reader(tmp_path)
    write(reader.file, "one\n")
    reader.follow(lambda: len(reader.read) == 1)
    reader.undelivered = reader.read[0][0]
    write(reader.file, "two\n", "three\n")
    reader.follow(lambda: len(reader.read) == 3)
    before = reader.read[1:]
    reader.read, reader.undelivered = [], 0
    reader.follow(lambda: len(reader.read) == 2)
    assert reader.read == before


def test_a_long_file_is_replaced_and_its_last_lines_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if the volume fills up, or lines are lost between the old file and the new one."""
    monkeypatch.setattr(log_follower, "_MOST_BYTES", 10)
    reader = Reader(tmp_path)
    old = reader.file.open("a")

    def write_old(text: str) -> None:
        old.write(text)
        old.flush()

    reader.follow(
        lambda: len(reader.read) == 4,
        lambda: write_old("a long line\n"),
        # Envoy has been told, and opens the new file before it writes the next lines.
        lambda: write_old("late\n"),
        lambda: write(reader.file, "new\n", "newer\n"),
    )
    assert reader.reopened >= 1
    assert sorted(reader.contents()) == sorted([b"a long line", b"late", b"new", b"newer"])
    assert reader.file.stat().st_size == len("new\nnewer\n")
    # A restart goes on in the new file.
    write(reader.file, "x\n")
    reader.follow(lambda: reader.contents()[-1] == b"x")
    assert len(reader.read) == 5
    old.close()
