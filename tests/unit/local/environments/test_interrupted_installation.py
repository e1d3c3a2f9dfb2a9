"""An installation that is killed leaves no process and is continued; two at the same time install once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pytest

from inference_blueprints.resources import root
from inference_local.serving.vllm_cpu.installation import VLLM
from tests.unit.local.environments.installing import FakeUv

pytestmark = pytest.mark.clock

#: Nothing here takes so long: it ends a test that hangs.
PATIENCE_SECONDS = 240.0
#: Installs in a process of its own, which a test can kill.
_DRIVER = """
import dataclasses, sys
from pathlib import Path
from inference_local.processes.interruption import Interrupted, interruptible
from inference_local.environments import environment
from inference_local.serving.vllm_cpu.installation import VLLM
from tests.unit.local.environments.installing import HOST
host = dataclasses.replace(HOST, uv=Path(sys.argv[1]))
environment.this_host = lambda folder: host
try:
    with interruptible():
        print(VLLM.python(lambda line: print(line, flush=True)))
except Interrupted as interruption:
    sys.exit(interruption.exit_code)
"""


def driver_of(uv: FakeUv) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _DRIVER, str(uv.program)]
    return subprocess.Popen(command, cwd=root(), stdout=subprocess.PIPE, text=True)


def wait_until_it_hangs(uv: FakeUv) -> psutil.Process:
    wait_until((uv.folder / "pid").exists)
    return psutil.Process(int((uv.folder / "pid").read_text()))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition never became true"
        time.sleep(0.02)


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_an_installation_that_is_killed_leaves_no_process_and_continues(
    uv: FakeUv, number: signal.Signals, code: int
) -> None:
    uv.request("hang")
    with driver_of(uv) as driver:
        hanging = wait_until_it_hangs(uv)
        driver.send_signal(number)
        assert driver.wait(PATIENCE_SECONDS) == code
    wait_until(lambda: gone(hanging))
    folder = VLLM.folder
    assert not VLLM.is_complete
    assert (folder / "downloads/.tmpPart").exists()
    lines: list[str] = []
    assert VLLM.python(lines.append).exists()
    assert "continues an interrupted installation" in lines[0]
    assert uv.syncs() == 2


def test_two_runs_at_the_same_time_install_once(uv: FakeUv) -> None:
    uv.request("hang")
    with driver_of(uv) as first:
        wait_until_it_hangs(uv)
        with driver_of(uv) as second:
            assert second.stdout is not None
            assert "waiting for it" in second.stdout.readline()
            (uv.folder / "hanging").unlink()
            outputs = [
                process.communicate(timeout=PATIENCE_SECONDS)[0].splitlines() for process in (first, second)
            ]
    assert {output[-1] for output in outputs} == {str(VLLM.folder / "env/bin/python")}
    assert uv.syncs() == 1
