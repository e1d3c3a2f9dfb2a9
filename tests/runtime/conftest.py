"""Time that passes without waiting, for programs that pause between two looks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from operations.promql import function_promql

_SLEEP, _this_thread = time.sleep, threading.current_thread


@dataclass
class Pauses:
    """Pauses of a program: none of them waits.

    Threads that ran before the test began are not the program's, and wait: the emulator's module of DynamoDB
    starts one when it is imported, which would loop without end.
    """

    seconds: list[float] = field(default_factory=list)
    _meanwhile: list[Callable[[], object]] = field(default_factory=list)
    _others: set[threading.Thread] = field(
        default_factory=lambda: {*threading.enumerate()} - {_this_thread()}
    )

    def let_happen(self, *acts: Callable[[], object]) -> None:
        """Let something happen in each of the next pauses."""
        self._meanwhile += acts

    def pass_by(self, seconds: float) -> None:
        if _this_thread() in self._others:
            _SLEEP(seconds)
            return
        self.seconds.append(seconds)
        if self._meanwhile:
            self._meanwhile.pop(0)()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    """The pauses of the program under test, in place of `time.sleep`."""
    found = Pauses()
    monkeypatch.setattr(time, "sleep", found.pass_by)
    # Its default is what `time.sleep` was when the module was imported.
    monkeypatch.setattr(function_promql, "__kwdefaults__", {"wait": found.pass_by})
    return found
