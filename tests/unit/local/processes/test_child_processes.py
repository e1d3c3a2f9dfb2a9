"""What a process group must never do: leave a process behind, or hide a death."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from inference_local.processes.child_processes import ProcessDied, ProcessGroup, ended_with_this

pytestmark = pytest.mark.clock

# Nothing here takes so long: it ends a test that hangs.
_PATIENCE_SECONDS = 120.0
_SLEEP = "import time; time.sleep(3600)"
# Starts a grandchild in a session of its own, ignores SIGTERM, and tells the grandchild's process id.
_STUBBORN_WITH_ORPHAN = f"""
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-c", {_SLEEP!r}], start_new_session=True)
print(grandchild.pid, flush=True)
time.sleep(3600)
"""
# Leaves a process in its own session, tells its id, and ends.
_LEAVES_A_PROCESS = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", {_SLEEP!r}]).pid, flush=True)
raise SystemExit(5)
"""
_RUNNING = "print('running');" + _SLEEP
_SUPERVISOR = """
import os, sys, time
from pathlib import Path
from inference_local.processes.child_processes import ProcessGroup
with ProcessGroup() as group:
    command = [sys.executable, "-uc", sys.argv[2]]
    process = group.start("child", command, environment=os.environ,
                          log_path=Path(sys.argv[1]))
    print(process.pid, flush=True)
    time.sleep(3600)
"""


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition never became true"
        time.sleep(0.02)


def _gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_stop_ends_processes_that_ignore_sigterm_and_their_orphans(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with ProcessGroup(grace_seconds=0.2) as group:
        command = [sys.executable, "-c", _STUBBORN_WITH_ORPHAN]
        process = group.start("stubborn", command, environment=os.environ, log_path=log)
        _wait_until(lambda: log.read_text().endswith("\n"))
        grandchild = int(log.read_text())
    assert not psutil.pid_exists(process.pid)
    assert not psutil.pid_exists(grandchild)


def test_an_orphan_whose_parent_was_killed_is_swept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with ProcessGroup(grace_seconds=0.2) as group:
        command = [sys.executable, "-c", _STUBBORN_WITH_ORPHAN]
        process = group.start("killed", command, environment=os.environ, log_path=log)
        _wait_until(lambda: log.read_text().endswith("\n"))
        grandchild = int(log.read_text())
        os.kill(process.pid, signal.SIGKILL)
        _wait_until(lambda: _gone(process.pid))
        assert psutil.pid_exists(grandchild)
    assert not psutil.pid_exists(grandchild)


@pytest.mark.parametrize("wait_for", ["its start", "nothing"])
def test_sigkill_of_the_supervisor_leaves_no_child(wait_for: str, tmp_path: Path) -> None:
    """A child that runs is killed by the kernel; one that is just being started notices by itself."""
    log = tmp_path / "log"
    command = [sys.executable, "-c", _SUPERVISOR, str(log), _RUNNING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        child = int(supervisor.stdout.readline())
        if wait_for == "its start":
            _wait_until(lambda: log.read_text() == "running\n")
        supervisor.kill()
    _wait_until(lambda: _gone(child))


def test_sigkill_of_the_supervisor_leaves_no_grandchild(tmp_path: Path) -> None:
    """The kernel's death signal reaches children only; an engine starts processes of its own."""
    log = tmp_path / "log"
    command = [sys.executable, "-c", _SUPERVISOR, str(log), _STUBBORN_WITH_ORPHAN]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as supervisor:
        _wait_until(lambda: log.is_file() and log.read_text().endswith("\n"))
        grandchild = int(log.read_text())
        assert not _gone(grandchild)
        supervisor.kill()
    _wait_until(lambda: _gone(grandchild))


def test_processes_of_others_survive_a_stop(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _SLEEP]) as bystander:
        with ProcessGroup() as group:
            group.start(
                "short", [sys.executable, "-c", _SLEEP], environment=os.environ, log_path=tmp_path / "log"
            )
        assert bystander.poll() is None
        bystander.kill()


def test_check_tells_name_code_and_last_lines(tmp_path: Path) -> None:
    with ProcessGroup() as group:
        process = group.start(
            "frontend",
            [sys.executable, "-c", "print('port taken'); raise SystemExit(3)"],
            environment=os.environ,
            log_path=tmp_path / "log",
        )
        process.popen.wait(_PATIENCE_SECONDS)
        with pytest.raises(ProcessDied, match=r"frontend exited with code 3(.|\n)*port taken"):
            group.check()


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with ProcessGroup() as group:
        process = group.start("ghost", ["no-such-program"], environment=os.environ, log_path=tmp_path / "log")
        process.popen.wait(_PATIENCE_SECONDS)
        with pytest.raises(ProcessDied, match="cannot start no-such-program"):
            group.check()


def test_only_the_given_environment_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "1")
    with ProcessGroup() as group:
        process = group.start("env", ["/usr/bin/env"], environment={"A": "b"}, log_path=tmp_path / "log")
        process.popen.wait(_PATIENCE_SECONDS)
    text = (tmp_path / "log").read_text()
    assert "A=b" in text
    assert "SECRET_OF_THE_CALLER" not in text


def test_a_start_outside_the_context_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not open"):
        ProcessGroup().start("x", ["true"], environment={}, log_path=tmp_path / "log")


def test_what_is_killed_on_purpose_is_dead_and_not_missed(tmp_path: Path) -> None:
    with ProcessGroup(grace_seconds=0.2) as group:
        command = [sys.executable, "-c", _SLEEP]
        killed, other = (
            group.start(name, command, environment=os.environ, log_path=tmp_path / name)
            for name in ("killed", "other")
        )
        group.kill(killed)
        assert killed.popen.returncode == -signal.SIGKILL
        assert group.processes == (other,)
        group.check()


def test_what_has_ended_and_is_forgotten_is_not_missed(tmp_path: Path) -> None:
    """Turns red if a process that is started again leaves its orphans, or its death to `check`."""
    log = tmp_path / "log"
    with ProcessGroup(grace_seconds=0.2) as group:
        command = [sys.executable, "-c", _LEAVES_A_PROCESS]
        process = group.start("first", command, environment=os.environ, log_path=log)
        process.popen.wait(_PATIENCE_SECONDS)
        member = int(log.read_text())
        with pytest.raises(ProcessDied, match="first exited with code 5"):
            group.check()
        group.forget(process)
        group.check()
        assert group.processes == ()
        _wait_until(lambda: _gone(member))


def test_an_error_ends_a_build_and_its_compilers(tmp_path: Path) -> None:
    """A signal to this program alone waited until the compiler had finished, for minutes."""
    mark = tmp_path / "compiler"
    script = f"sleep 3600 & echo $! > {mark}; wait"
    process = subprocess.Popen(["sh", "-c", script], text=True, start_new_session=True)
    _wait_until(lambda: mark.is_file() and mark.read_text().endswith("\n"))
    with pytest.raises(KeyboardInterrupt), ended_with_this(process):
        raise KeyboardInterrupt
    compiler = int(mark.read_text())
    _wait_until(lambda: _gone(compiler))
