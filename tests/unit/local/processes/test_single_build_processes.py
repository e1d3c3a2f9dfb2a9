"""Two processes build one folder; the kernel releases the lock of a killed one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.clock

#: Builds a folder after its standard input has a line, and says what it does.
_PROGRAM = """
import sys
from pathlib import Path
from inference_local.processes.checked_folder import made_once

def make(draft):
    (draft / "file").write_text("partly")
    sys.stdin.readline()
    (draft / "file").write_text("complete")

made_once(Path(sys.argv[1]), "tool", make, lambda line: print(line, flush=True))
"""


def started(target: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PROGRAM, str(target)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_one_process_builds_and_the_other_uses_the_result(tmp_path: Path) -> None:
    target = tmp_path / "tool"
    with started(target) as first:
        assert line_of(first) == "tool: building"
        with started(target) as second:
            assert line_of(second) == "tool: waiting for another process that builds it"
            first.communicate("go on\n")
            assert line_of(second) == "tool: cached"
    assert (target / "file").read_text() == "complete"


def test_when_the_process_that_builds_is_killed_the_other_builds(tmp_path: Path) -> None:
    target = tmp_path / "tool"
    with started(target) as first:
        assert line_of(first) == "tool: building"
        with started(target) as second:
            assert line_of(second) == "tool: waiting for another process that builds it"
            first.kill()
            assert line_of(second) == "tool: building"
            second.communicate("go on\n")
    assert (target / "file").read_text() == "complete"
    assert [path.name for path in tmp_path.iterdir()] == ["tool"]
