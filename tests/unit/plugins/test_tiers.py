"""What a test of the first tier must not do is refused while it runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inference_blueprints import tools


def test_a_program_is_refused_with_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"starts python.*; allowed: blueprints, git, .*mark the test"):
        subprocess.run([sys.executable, "-c", ""], check=True)
    with pytest.raises(RuntimeError, match="starts cc"):
        subprocess.run(["anything"], executable="/usr/bin/cc", check=True)


def test_a_program_of_asyncio_is_refused() -> None:
    with pytest.raises(RuntimeError, match="starts go"):
        asyncio.run(asyncio.create_subprocess_exec("go", "build"))


def test_helm_may_start() -> None:
    assert subprocess.run([tools.helm(), "version"], check=True, capture_output=True).stdout


def test_sleep_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"sleeps for 0\.25 s; wait for an event"):
        time.sleep(0.25)
    time.sleep(0)  # it lets other threads run


@pytest.mark.thorough
def test_a_test_of_another_suite_may_do_both(tmp_path: Path) -> None:
    time.sleep(0.001)
    subprocess.run([sys.executable, "-c", f"open({str(tmp_path / 'file')!r}, 'w')"], check=True)
    assert (tmp_path / "file").exists()
