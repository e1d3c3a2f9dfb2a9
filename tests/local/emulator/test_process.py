"""The emulator as a process: where it listens, what it writes, what it leaves behind."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest

from inference_local.emulator.emulator import Emulator
from inference_local.processes.child_processes import ProcessDied

_SUPERVISOR = """
import sys, time
from pathlib import Path
from inference_local.emulator.emulator import Emulator
with Emulator(Path(sys.argv[1]), region="us-west-2") as emulator:
    import tests.local.emulator.test_process as helpers
    print(emulator.pid, helpers._busy_worker(emulator.client("lambda"), Path(sys.argv[1])), flush=True)
    time.sleep(120)
"""
# An idle worker ends when its standard input does; one in the middle of its work does not.
_FUNCTION = """
import os, time
from pathlib import Path
def handler(event, context):
    Path(event["file"] + ".part").write_text(str(os.getpid()))
    os.rename(event["file"] + ".part", event["file"])
    time.sleep(120)
"""


def _busy_worker(client: Any, directory: Path) -> int:
    """Start a function that takes long and return the process id of its worker."""
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", _FUNCTION)
    client.create_function(
        FunctionName="busy",
        Runtime="python3.11",
        Handler="index.handler",
        Timeout=120,
        Role="arn:aws:iam::123456789012:role/any",
        Code={"ZipFile": code.getvalue()},
    )
    file = directory / "worker.pid"
    payload = json.dumps({"file": str(file)})
    client.invoke(FunctionName="busy", InvocationType="Event", Payload=payload)
    deadline = time.monotonic() + 240
    while not file.exists():
        assert time.monotonic() < deadline, "the function never ran"
        time.sleep(0.02)
    return int(file.read_text())


def _wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 240
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.02)


def _check_until_noticed(emulator: Emulator) -> None:
    """Check for a while, because the threads of a killed process end one after the other."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        emulator.check()
        time.sleep(0.02)


def _listening_addresses(pid: int) -> set[tuple[str, int]]:
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    sockets = [connection for process in processes for connection in process.net_connections("inet")]
    unconnected = [
        each for each in sockets if each.status == psutil.CONN_LISTEN or each.type == socket.SOCK_DGRAM
    ]
    return {(connection.laddr.ip, connection.laddr.port) for connection in unconnected}


def test_it_listens_on_loopback_only_and_keeps_to_its_folder(tmp_path: Path, monkeypatch: Any) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")))
    monkeypatch.setenv("HOME", str(home))
    with Emulator(tmp_path / "run", region="us-west-2") as emulator:
        worker = _busy_worker(emulator.client("lambda"), tmp_path)
        assert worker in {child.pid for child in psutil.Process(emulator.pid).children(recursive=True)}
        port = int(emulator.endpoint_url.rpartition(":")[2])
        assert _listening_addresses(emulator.pid) == {("127.0.0.1", port)}
        pid = emulator.pid
    assert not psutil.pid_exists(pid)
    assert not psutil.pid_exists(worker)
    assert list(home.iterdir()) == []


def test_a_killed_emulator_takes_its_workers_along_and_is_noticed(tmp_path: Path) -> None:
    with Emulator(tmp_path, region="us-west-2") as emulator:
        worker = _busy_worker(emulator.client("lambda"), tmp_path)
        os.kill(emulator.pid, signal.SIGKILL)
        _wait_until_gone(worker)
        with pytest.raises(ProcessDied, match="AWS emulator was killed by signal 9"):
            _check_until_noticed(emulator)


def test_a_killed_supervisor_takes_the_emulator_and_its_workers_along(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SUPERVISOR, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        pids = [int(word) for word in supervisor.stdout.readline().split()]
        assert all(psutil.pid_exists(pid) for pid in pids)
        supervisor.kill()
    assert len(pids) == 2
    for pid in pids:
        _wait_until_gone(pid)


def test_an_emulator_that_cannot_start_shows_its_log(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "ministack.py").write_text("raise RuntimeError('broken installation')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with (
        pytest.raises(ProcessDied, match=r"(?s)AWS emulator exited with code 1.*broken installation"),
        Emulator(tmp_path / "run", region="us-west-2"),
    ):
        pass


def test_any_client_that_takes_the_environment_speaks_to_the_emulator(
    emulator: Emulator, monkeypatch: Any
) -> None:
    for name, value in emulator.environment().items():
        monkeypatch.setenv(name, value)
    identity = boto3.Session().client("sts").get_caller_identity()
    assert identity["Account"] == emulator.account
