"""Follows Envoy's access log, keeps how far it has come, and renames the file when it is long.

A file and not Envoy's gRPC access log: that one drops lines while nobody reads them (``logs_dropped`` in
Envoy's statistics), so each restart of the policy would leave reservations unsettled, and it costs a protobuf
message per line. A file waits for its reader. Whatever is lost on the way (a crash of Envoy loses what it has
buffered, a full disk what it cannot write) leaves reservations charged: never too little.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final

from front_door.trouble import Trouble

#: Envoy writes five times a second. Each look takes a tenth of a millisecond of processor time.
_POLL_SECONDS: Final = 0.1
_READ_BYTES: Final = 1 << 20
#: Size at which the file is renamed, so that the volume of the log has a bound: twice as much.
_MOST_BYTES: Final = 64 * 2**20
#: A position is the number of the file and, in the lower bits, the byte in it.
_FILE_BITS: Final = 40
#: Three numbers of 20 digits.
_STATE_BYTES: Final = 80


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line, and the positions at which it begins and ends. Positions grow over all files of a log."""

    start: int
    end: int
    content: bytes


#: Takes lines. It returns when they are settled. Of lines whose second argument is True, some may have been
#: settled before a restart.
SettleLines = Callable[[list[LogLine], bool], Awaitable[None]]


class LogFollower:
    """Gives lines to a function in their order. After a restart it gives those again that were not finished.

    file: The log.
    state: File that keeps the position.
    settle: Takes the lines.
    finished: Returns the position up to which nothing has to be given again, of those that were settled.
    reopen: Makes Envoy open the file again after it was renamed. None: it is never renamed.
    """

    def __init__(
        self,
        file: Path,
        state: Path,
        settle: SettleLines,
        finished: Callable[[int], int],
        reopen: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._file, self._state, self._settle = file, state, settle
        self._finished, self._reopen = finished, reopen
        self._old = file.with_name(f"{file.name}.old")
        self._inodes: dict[int, int] = {}
        self._doubtful_until = 0
        self._trouble = Trouble("access log not replaced")
        self._kept: int | None = None
        self._settling_since: float | None = None
        self.unread_bytes = 0

    def lag_seconds(self) -> float:
        """Return for how long the oldest line that was read has been waiting for its settlement."""
        return 0.0 if self._settling_since is None else time.monotonic() - self._settling_since

    async def run(self) -> None:
        """Follow the log, until it is cancelled."""
        number, offset = 1, 0
        with contextlib.suppress(OSError, ValueError, TypeError):
            inode, finished, settled = json.loads(self._state.read_text())
            number, offset = finished >> _FILE_BITS, finished % (1 << _FILE_BITS)
            self._doubtful_until = settled + _READ_BYTES
            if self._old.exists() and self._old.stat().st_ino == inode:
                await self._follow(self._old, number, offset)
                number, offset = number + 1, 0
            elif self._file.exists() and self._file.stat().st_ino != inode:
                number, offset = number + 1, 0
        while True:
            while not self._file.exists():
                await asyncio.sleep(_POLL_SECONDS)
            await self._follow(self._file, number, offset)
            number, offset = number + 1, 0

    async def _follow(self, file: Path, number: int, offset: int) -> None:
        """Read a file until another is in its place."""
        with file.open("rb") as log:
            known = os.fstat(log.fileno())
            self._inodes[number] = known.st_ino
            log.seek(offset if offset <= known.st_size else 0)
            while file == self._file and self._file_is(known.st_ino):
                if not await self._read(log, number):
                    await asyncio.sleep(_POLL_SECONDS)
                if self._reopen and log.tell() > _MOST_BYTES:
                    await self._rotate(number)
            # Envoy may have written to the old file until it opened the new one.
            while await self._read(log, number):
                pass

    async def _rotate(self, number: int) -> None:
        assert self._reopen  # noqa: S101 -- for the type checker
        is_free = self._finished(number << _FILE_BITS) >> _FILE_BITS == number
        with contextlib.suppress(FileNotFoundError):  # it was renamed, and Envoy has not opened the new one
            if is_free and self._file.stat().st_ino == self._inodes[number]:
                self._file.rename(self._old)
        try:
            await self._reopen()
            self._trouble.is_over()
        except OSError as error:  # asked again at the next look
            self._trouble.report(error)

    def _file_is(self, inode: int) -> bool:
        try:
            return self._file.stat().st_ino == inode
        except FileNotFoundError:
            return True

    async def _read(self, log: BufferedReader, number: int) -> bool:
        """Settle what has come. Return False if nothing has."""
        start = log.tell()
        data = log.read(_READ_BYTES)
        end = data.rfind(b"\n") + 1
        log.seek(start + end)
        self.unread_bytes = os.fstat(log.fileno()).st_size - start
        if not end:
            return False
        at, lines = (number << _FILE_BITS) + start, []
        first = at
        for content in data[:end].split(b"\n")[:-1]:
            lines.append(LogLine(at, at + len(content) + 1, content))
            at += len(content) + 1
        self._settling_since = time.monotonic()
        await self._settle(lines, first < self._doubtful_until)
        self._settling_since = None
        self.unread_bytes -= end
        self._save(at)
        return True

    def _save(self, settled: int) -> None:
        finished = self._finished(settled)
        inode = self._inodes.get(finished >> _FILE_BITS, 0)
        if self._kept is None:
            self._kept = os.open(self._state, os.O_WRONLY | os.O_CREAT, 0o600)
        # Over the last one, in one write of one length: a process that is killed has written all or nothing
        # of it. A new file and a rename ten times a second took a twentieth of this process's time.
        os.pwrite(self._kept, json.dumps([inode, finished, settled]).ljust(_STATE_BYTES).encode(), 0)
