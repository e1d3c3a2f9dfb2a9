"""Programs of one context manager end with it, also when they do not come to work."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from inference_local.processes.child_processes import ProcessDied, Programs

pytestmark = pytest.mark.clock


class _Sleeper(Programs):
    """One program; entering fails when it does not come to work."""

    def __init__(self, log: Path, *, works: bool = True) -> None:
        super().__init__(grace_seconds=1)
        self._log = log
        self._works = works
        self.pid = 0

    def _start(self) -> None:
        command = ["sleep", "3600"] if self._works else ["false"]
        process = self._processes.start("sleeper", command, environment={}, log_path=self._log)
        self.pid = process.pid
        if not self._works:
            process.popen.wait()
            self.check()


def test_what_runs_inside_is_gone_outside(tmp_path: Path) -> None:
    with _Sleeper(tmp_path / "log") as sleeper:
        sleeper.check()
        assert psutil.pid_exists(sleeper.pid)
    assert not psutil.pid_exists(sleeper.pid)


def test_what_does_not_come_to_work_is_ended_and_says_why(tmp_path: Path) -> None:
    sleeper = _Sleeper(tmp_path / "log", works=False)
    with pytest.raises(ProcessDied, match="sleeper exited with code 1"):
        sleeper.__enter__()
    assert not psutil.pid_exists(sleeper.pid)
