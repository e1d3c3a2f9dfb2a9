"""Processes that have ended are started again, and not for ever."""

from __future__ import annotations

import signal
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from inference_local.processes.child_processes import (
    MAX_RESTARTS,
    PERIOD_SECONDS,
    ProcessDied,
    ProcessGroup,
    Restarts,
    RunningProcess,
)


class Started:
    """In the place of a child process: it runs until a test says how it ended."""

    _numbers = count(1)

    def __init__(self) -> None:
        self.pid = next(self._numbers)
        self.exit_code: int | None = None

    def poll(self) -> int | None:
        return self.exit_code


class Group(ProcessGroup):
    """A group that starts nothing and kills nothing."""

    def add(self, name: str, popen: Started) -> RunningProcess:
        process = RunningProcess(name, cast(Any, popen), Path("no.log"))
        self._processes.append(process)
        return process

    def forget(self, process: RunningProcess) -> None:
        self._processes.remove(process)


class Sleeper:
    """A process that sleeps, and a clock that only the test moves."""

    def __init__(self) -> None:
        self.processes = Group()
        self.lines: list[str] = []
        self.now = 0.0
        self.restarts = Restarts(self.processes, self.lines.append, lambda: self.now)
        self.start()

    def start(self) -> None:
        self.popen = Started()
        self.process = self.processes.add("sleeper", self.popen)

    def end(self) -> None:
        self.popen.exit_code = -signal.SIGKILL

    def restart_ended(self) -> None:
        self.restarts.restart_ended([(self.process, self.start)])


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


def test_what_was_killed_runs_again_and_is_told(sleeper: Sleeper) -> None:
    first = sleeper.process
    sleeper.restart_ended()
    assert sleeper.process is first
    sleeper.end()
    sleeper.restart_ended()
    assert sleeper.process.pid != first.pid
    sleeper.processes.check()
    assert sleeper.processes.processes == (sleeper.process,)
    assert sleeper.lines == ["sleeper was killed by signal 9; started it again (1 of 5 times in 10 minutes)"]


def test_what_ends_again_and_again_is_reported(sleeper: Sleeper) -> None:
    for _ in range(MAX_RESTARTS + 1):
        sleeper.end()
        sleeper.restart_ended()
    assert len(sleeper.lines) == MAX_RESTARTS
    with pytest.raises(ProcessDied, match="sleeper was killed by signal 9"):
        sleeper.processes.check()
    sleeper.now += PERIOD_SECONDS
    sleeper.restart_ended()
    sleeper.processes.check()
