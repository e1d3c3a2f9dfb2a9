"""Follows Envoy's access log, keeps how far it has read, and renames the file when it is long.

A file and not Envoy's gRPC access log: that one drops lines while nobody reads them (``logs_dropped`` in
Envoy's statistics), so that each restart of the policy would leave reservations unsettled, and it costs a
protobuf message per line. A file waits for its reader. Whatever is lost on the way (a crash of Envoy loses
what it has buffered, a full disk what it cannot write) leaves reservations charged: never too little.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from io import BufferedReader
from pathlib import Path
from typing import Final

_POLL_SECONDS: Final = 0.02
_READ_BYTES: Final = 1 << 20
#: Size at which the file is renamed, so that the volume of the log has a bound.
_MOST_BYTES: Final = 64 * 2**20


class LogFollower:
    """Gives lines to a function, in their order, and again after a restart what it had not finished.

    file: The log.
    state: File that keeps the position.
    settle: Takes lines, and returns when they need not be given again.
    reopen: Makes Envoy open the file again after it was renamed. None: it is never renamed.
    """

    def __init__(
        self,
        file: Path,
        state: Path,
        settle: Callable[[list[bytes]], Awaitable[None]],
        reopen: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._file, self._state, self._settle, self._reopen = file, state, settle, reopen

    async def run(self) -> None:
        """Follow the log, until it is cancelled."""
        old = self._file.with_name(f"{self._file.name}.old")
        inode, position = self._position()
        if old.exists() and old.stat().st_ino == inode:
            await self._finish(old, position)
            inode, position = 0, 0
        while not self._file.exists():
            await asyncio.sleep(_POLL_SECONDS)
        while True:
            with self._file.open("rb") as log:
                known = os.fstat(log.fileno())
                log.seek(position if known.st_ino == inode and position <= known.st_size else 0)
                while not await self._is_replaced(log.fileno()):
                    if not await self._read(log):
                        await asyncio.sleep(_POLL_SECONDS)
                    if self._reopen and log.tell() > _MOST_BYTES and self._file.exists():
                        self._file.rename(old)
                        await self._reopen()
                # Envoy may have written to the old file until it opened the new one.
                while await self._read(log):
                    pass
            inode, position = 0, 0

    async def _is_replaced(self, descriptor: int) -> bool:
        try:
            return self._file.stat().st_ino != os.fstat(descriptor).st_ino
        except FileNotFoundError:
            return False

    async def _finish(self, file: Path, position: int) -> None:
        with file.open("rb") as log:
            log.seek(position)
            while await self._read(log):
                pass

    async def _read(self, log: BufferedReader) -> bool:
        """Settle what has come. Return False if nothing has."""
        start = log.tell()
        data = log.read(_READ_BYTES)
        end = data.rfind(b"\n") + 1
        log.seek(start + end)
        if not end:
            return False
        await self._settle(data[:end].splitlines())
        self._save(os.fstat(log.fileno()).st_ino, start + end)
        return True

    def _position(self) -> tuple[int, int]:
        with contextlib.suppress(OSError, ValueError):
            inode, position = json.loads(self._state.read_text())
            return inode, position
        return 0, 0

    def _save(self, inode: int, position: int) -> None:
        new = self._state.with_suffix(".new")
        new.write_text(json.dumps([inode, position]))
        new.rename(self._state)
