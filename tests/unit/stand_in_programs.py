"""Other programs, as functions of a test: what each one prints, and how it was called."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pytest


class Call(NamedTuple):
    """A call of a program, without its own name."""

    words: list[str]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Printed:
    """What a program prints, and its exit code."""

    out: str = ""
    err: str = ""
    code: int = 0


class StandInPrograms:
    """Is `subprocess.run` of a test. It starts no process, and knows only the programs that the test adds."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[Call] = []
        self._answers: dict[str, Callable[[Call], Printed]] = {}
        patch.setattr(subprocess, "run", self._run)

    def add(self, name: str, answer: Callable[[Call], Printed]) -> None:
        """Add a program, or replace one.

        name: The file name of the program.
        """
        self._answers[name] = answer

    def _run(
        self,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        stdout: BinaryIO | None = None,
        **_: object,
    ) -> subprocess.CompletedProcess[str]:
        program, *words = map(str, command)
        call = Call(words, os.environ if env is None else env)
        self.calls.append(call)
        printed = self._answers[Path(program).name](call)
        if stdout is not None:
            stdout.write((printed.out + printed.err).encode())
        return subprocess.CompletedProcess(list(command), printed.code, printed.out, printed.err)
