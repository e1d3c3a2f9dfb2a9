"""Runs the command `blueprints` in the process of the test: to start another costs ten times as much."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple
from unittest import mock

from inference_blueprints.cli.main import run

#: The installed command. Few tests start it: tests/unit/cli/test_start.py.
PROGRAM = Path(sys.executable).parent / "blueprints"
_DESCRIPTORS = {"stdout": 1, "stderr": 2}


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def blueprints(*words: str, folder: Path, given: str = "", **variables: str) -> Ran:
    """Run a command, and leave the working folder, the environment and the streams as they were.

    What would end a process with a traceback is raised.

    words: The command without `blueprints`.
    folder: Working folder.
    given: Standard input.
    variables: Environment variables beside those of the test.
    """
    with (
        chdir(folder),
        mock.patch.dict(os.environ, variables),
        mock.patch.object(sys, "argv", ["blueprints", *words]),
        # In `python -m pytest`, a command would call itself `python -m pytest.blueprints`.
        mock.patch.object(sys.modules["__main__"], "__package__", None),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode()))),
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        with _redirected("stdout", out), _redirected("stderr", err):
            code = _exit_code()
        return Ran(code, _content(out), _content(err))


def _exit_code() -> int:
    code: object = 0
    try:
        run()
    except SystemExit as ended:
        code = ended.code or 0
    assert isinstance(code, int)
    return code


@contextmanager
def _redirected(name: str, file: BinaryIO) -> Iterator[None]:
    """Redirect the descriptor too: libraries in other languages and child processes write to it."""
    descriptor = _DESCRIPTORS[name]
    saved = os.dup(descriptor)
    os.dup2(file.fileno(), descriptor)
    try:
        with (
            open(descriptor, "w", encoding="utf-8", closefd=False) as stream,
            mock.patch.object(sys, name, stream),
        ):
            yield
    finally:
        os.dup2(saved, descriptor)
        os.close(saved)


def _content(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()
