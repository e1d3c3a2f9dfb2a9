"""Reads Parquet in a child process with limited memory. A damaged file can end only that process.

The child has pyarrow and no access to AWS. It asks the parent for ranges of the file, and returns rows as
JSON.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any, Final

from batch.preparation.input_text import InputRow, UnreadableInputError
from batch.preparation.line_checks import BadLine
from batch.preparation.segments import Span

#: Returns a byte range of a file; the end is excluded.
Read = Callable[[int, int], bytes]

#: Memory limit of the child. A page of long texts is hundreds of MiB, which exist compressed and
#: decompressed.
READER_BYTES: Final = 2 * 2**30
_LONGEST_WORDS: Final = 300
#: Time for a child that closed its socket to end.
_PATIENCE_SECONDS: Final = 10.0
_READER: Final = "batch.preparation.parquet_reader"


class _DiedError(Exception):
    """The child process ended."""


class ParquetReader:
    """Reads Parquet files one after the other. Close it after use."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._link: Connection | None = None
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`

    def close(self) -> None:
        """End the process that reads."""
        self._stop()
        self._words.close()

    def row_groups(self, read: Read, size: int) -> list[tuple[int, int]]:
        """Return rows and uncompressed bytes of each row group of a file.

        read, size: Reads byte ranges of the file, and the size of the file in bytes.
        Raises UnreadableInputError if the file cannot be read.
        """
        found: list[tuple[int, int]] = []
        try:
            for answer in self._answers({"size": size}, read):
                found += [(rows, group) for rows, group in answer["row_groups"]]
        except _DiedError as error:
            raise UnreadableInputError(str(error)) from error
        return found

    def rows(self, read: Read, size: int, row_groups: Span) -> Iterator[InputRow]:
        """Iterate over the rows of a range of row groups, numbered from 1.

        read, size: Reads byte ranges of the file, and the size of the file in bytes.
        row_groups: First row group, and the one after the last.
        Raises UnreadableInputError if the rows, or the rest of them, cannot be read.
        """
        line = 0
        try:
            for answer in self._answers({"size": size, "rows_of": row_groups}, read):
                for content, custom_id, reasons in answer["rows"]:
                    line += 1
                    yield InputRow(line, BadLine(custom_id, tuple(reasons)) if content is None else content)
        except _DiedError as error:
            raise UnreadableInputError(str(error), line=line + 1) from error

    def _answers(self, question: Mapping[str, Any], read: Read) -> Iterator[dict[str, Any]]:
        """Send a request to the child, and iterate over its answers."""
        link = self._start()
        try:
            link.send_bytes(json.dumps(question).encode())
            while "done" not in (answer := json.loads(link.recv_bytes())):
                if "read" in answer:
                    link.send_bytes(read(*answer["read"]))
                elif "unreadable" in answer:
                    raise UnreadableInputError(answer["unreadable"], line=answer["line"])
                else:
                    yield answer
        except (EOFError, ConnectionError) as error:
            ending = self._stop(patience_seconds=_PATIENCE_SECONDS)
            raise _DiedError(f"cannot be read, it may be damaged: its reader ended with {ending}") from error

    def _start(self) -> Connection:
        """Start the child process if necessary, and return the connection to it."""
        if self._link is not None:
            return self._link
        if importlib.util.find_spec("pyarrow") is None:
            raise UnreadableInputError(
                "Parquet is not supported in this region, where AWS has no layer with pyarrow; write it as "
                ".jsonl or .csv"
            )
        own, others = socket.socketpair()
        with others:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _READER, str(others.fileno()), str(READER_BYTES)],
                pass_fds=[others.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=self._words,
                # The import path of this process, including paths of Lambda layers; and settings that keep
                # reserved but unused memory small.
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "ARROW_DEFAULT_MEMORY_POOL": "system",
                    "MALLOC_ARENA_MAX": "1",
                },
            )
        self._link = Connection(own.detach())
        return self._link

    def _stop(self, *, patience_seconds: float = 0.0) -> str:
        """End the child, unless it has ended. Return its exit code and its last output."""
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._process is None:
            return "nothing"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_seconds)
        self._process.kill()
        code = self._process.wait()
        self._process = None
        ending = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        self._words.seek(0)
        words = self._words.read().decode(errors="replace").split("\n")
        self._words.truncate(0)
        return ": ".join([ending, *[each.strip()[:_LONGEST_WORDS] for each in words if each.strip()][-1:]])
