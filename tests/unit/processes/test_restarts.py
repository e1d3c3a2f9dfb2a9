"""Processes that have ended are started again, and not for ever."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference_blueprints.processes.child_processes import ProcessDied, ProcessGroup, RunningProcess
from inference_blueprints.processes.restarts import MOST_RESTARTS, PERIOD_SECONDS, Restarts


class Sleeper:
    """A process that sleeps, and a clock that only the test moves."""

    def __init__(self, processes: ProcessGroup, directory: Path) -> None:
        self.processes = processes
        self.directory = directory
        self.lines: list[str] = []
        self.now = 0.0
        self.restarts = Restarts(processes, self.lines.append, lambda: self.now)
        self.process: RunningProcess
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        log = self.directory / "sleeper.log"
        self.process = self.processes.start("sleeper", command, environment={}, log_path=log)

    def end(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.popen.wait()

    def restart_ended(self) -> None:
        self.restarts.restart_ended([(self.process, self.start)])


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Sleeper]:
    with ProcessGroup() as processes:
        yield Sleeper(processes, tmp_path)


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
    for _ in range(MOST_RESTARTS + 1):
        sleeper.end()
        sleeper.restart_ended()
    assert len(sleeper.lines) == MOST_RESTARTS
    with pytest.raises(ProcessDied, match="sleeper was killed by signal 9"):
        sleeper.processes.check()
    sleeper.now += PERIOD_SECONDS
    sleeper.restart_ended()
    sleeper.processes.check()
