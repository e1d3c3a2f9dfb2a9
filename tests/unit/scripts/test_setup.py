"""`make setup` says what a machine lacks, before it writes anything."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from inference_blueprints.resources import root

pytestmark = pytest.mark.clock


def set_up(folder: Path, programs: dict[str, str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a folder of its own, with programs in place of those of the system."""
    for name in ("scripts", "programs"):
        (folder / name).mkdir()
    shutil.copy(root() / "scripts/setup.sh", folder / "scripts")
    shutil.copy(root() / "requirements.lock", folder)
    for name, text in {"df": "echo Filesystem; echo disk 9 8 9999999 1% /", **programs}.items():
        program = folder / "programs" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    environment = {"PATH": f"{folder / 'programs'}{os.pathsep}{os.environ['PATH']}", **variables}
    return subprocess.run(
        ["sh", "scripts/setup.sh"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({"df": "echo Filesystem; echo disk 9 8 102400 99% /"}, "100 MB of free disk space"),
        ({"uname": "case $1 in -s) echo Linux;; *) echo riscv64;; esac"}, "this machine is Linux on riscv64"),
        ({"python3.11": "echo 3.12"}, "is Python 3.12; install Python 3.11"),
        ({"python3.11": 'case "$2" in *venv*) exit 1;; *) echo 3.11;; esac'}, "has no venv module"),
    ],
    ids=["disk", "machine", "python", "venv"],
)
def test_what_is_missing_is_said_before_any_work(programs: dict[str, str], said: str, tmp_path: Path) -> None:
    """A full disk ended in an error of uv after minutes of downloads."""
    ran = set_up(tmp_path, programs)
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not (tmp_path / ".venv").exists()


def test_a_step_that_fails_shows_its_output_and_says_so(tmp_path: Path) -> None:
    """Without the end of the log, a proxy that refuses the index is not found."""
    python = 'case "$*" in *%d*) echo 3.11;; *ensurepip*) echo pip.whl;; *) echo no route; exit 1;; esac'
    ran = set_up(tmp_path, {"python3.11": python})
    assert ran.returncode == 1
    assert "setup: uv " in ran.stderr
    assert "could not be installed from the Python package index" in ran.stderr
    assert "no route" in ran.stderr
    assert "[1/4]" in ran.stdout
