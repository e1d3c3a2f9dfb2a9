"""Processes that die while a model is served, and while it starts."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessDied, ProcessGroup, RunningProcess
from inference_local.serving import local_serving, simulated_kind
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.readiness import NotReady

pytestmark = pytest.mark.faults

_MODEL = "qwen3-8b"
_STREAMS = 4
_TOKENS = 60
_TIMEOUT = 60.0
_MIGRATIONS = "dynamo_frontend_model_migration_total"
# Serves the quickstart, tells the process ids, and waits to be killed.
_SUPERVISOR = """
import sys, time
from pathlib import Path
import yaml
from inference_blueprints import resources
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_serving import LocalServing
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
text = (resources.blueprints_directory() / "quickstart-g6e.yaml").read_text()
blueprint = Blueprint.model_validate(yaml.safe_load(text))
with ProcessGroup() as group:
    LocalServing(build_plan(blueprint), blueprint, Path(sys.argv[1]), group).start(lambda _: None)
    print(*(process.pid for process in group.processes), flush=True)
    time.sleep(600)
"""


def quickstart() -> Blueprint:
    text = (resources.blueprints_directory() / "quickstart-g6e.yaml").read_text()
    return Blueprint.model_validate(yaml.safe_load(text))


class _Run:
    """The quickstart, served for one test."""

    def __init__(self, directory: Path) -> None:
        blueprint = quickstart()
        self.group = ProcessGroup().__enter__()
        self.serving = LocalServing(build_plan(blueprint), blueprint, directory, self.group)
        self.endpoint: LocalEndpoint = self.serving.start(lambda _: None)[0]

    def migrations(self) -> float:
        """Streams that the frontends have moved from one worker to another."""
        pages = [
            urllib.request.urlopen(url, timeout=_TIMEOUT).read().decode()  # noqa: S310 - of this machine
            for url in self.endpoint.metrics_urls
        ]
        lines = [line for page in pages for line in page.splitlines()]
        return sum(float(line.split()[-1]) for line in lines if line.startswith(_MIGRATIONS))

    def process(self, name: str) -> RunningProcess:
        return next(each for each in self.group.processes if each.name == name)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[_Run]:
    started = _Run(tmp_path)
    yield started
    started.group.stop()


def _kill(process: RunningProcess) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.popen.wait(_TIMEOUT)


def _has_text(line: bytes) -> bool:
    """Whether a line of an event stream brings a token."""
    return line.startswith(b"data: {") and any(
        choice["text"] for choice in json.loads(line.removeprefix(b"data: "))["choices"]
    )


def _streams(run: _Run, begun: threading.Barrier) -> tuple[list[threading.Thread], list[int]]:
    """Begin streams, meet at the barrier after their first tokens, and count what each brings in the end."""
    counts: list[int] = []
    address = urlsplit(run.endpoint.base_url)
    host = address.hostname
    assert host is not None
    body = json.dumps({"model": _MODEL, "prompt": "Hello", "max_tokens": _TOKENS, "stream": True})

    def read() -> None:
        connection = http.client.HTTPConnection(host, address.port, timeout=_TIMEOUT)
        count = 0
        with (
            closing(connection),
            suppress(OSError, http.client.HTTPException),
        ):  # a stream that breaks is short
            connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            for line in connection.getresponse():
                if _has_text(line):
                    count += 1
                    if count == 1:
                        begun.wait(_TIMEOUT)
        counts.append(count)

    threads = [threading.Thread(target=read) for _ in range(_STREAMS)]
    for thread in threads:
        thread.start()
    return threads, counts


def test_streams_survive_the_loss_of_a_worker_and_the_loss_is_told(run: _Run) -> None:
    begun = threading.Barrier(_STREAMS + 1)
    threads, counts = _streams(run, begun)
    begun.wait(_TIMEOUT)
    victim = run.process("worker 1 of qwen3-8b-main")
    _kill(victim)
    for thread in threads:
        thread.join(_TIMEOUT)
    assert counts == [_TOKENS] * _STREAMS
    assert run.migrations() > 0, "the worker that died had no streams"
    with pytest.raises(ProcessDied, match=r"worker 1 of qwen3-8b-main was killed by signal 9"):
        run.serving.check()


@pytest.mark.parametrize("name", ["frontend 2 of qwen3-8b-main", "relay", "network namespace"])
def test_a_dead_process_is_told_by_its_name(run: _Run, name: str) -> None:
    run.serving.check()
    _kill(run.process(name))
    with pytest.raises(ProcessDied, match=f"{name} was killed by signal 9"):
        run.serving.check()


def test_stopping_with_streams_under_way_is_quick(run: _Run) -> None:
    begun = threading.Barrier(_STREAMS + 1)
    threads, counts = _streams(run, begun)
    begun.wait(_TIMEOUT)
    pids = [process.pid for process in run.group.processes]
    run.group.stop()
    for thread in threads:
        thread.join(_TIMEOUT)
    assert not any(psutil.pid_exists(pid) for pid in pids)
    # Streams that could end by themselves would mean that stopping waited for them.
    assert min(counts) < _TOKENS


def _gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "the condition never became true"
        time.sleep(0.02)


@pytest.mark.parametrize(
    "wrapper",
    [(), ("unshare", "--user", "--map-user=1000", "--map-group=1000")],
    ids=["as-started", "as-an-ordinary-user"],
)
def test_sigkill_of_the_supervisor_leaves_no_process(tmp_path: Path, wrapper: tuple[str, ...]) -> None:
    possible = subprocess.run([*wrapper, "true"], capture_output=True, text=True, check=False)
    if possible.returncode != 0:
        pytest.skip(f"this machine cannot take such rights away: {possible.stderr.strip()}")
    command = [*wrapper, sys.executable, "-c", _SUPERVISOR, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        pids = [int(pid) for pid in supervisor.stdout.readline().split()]
        assert len(pids) == 6, "namespace, relay, two frontends, two workers"
        assert all(psutil.pid_exists(pid) for pid in pids)
        supervisor.kill()
    _wait_until(lambda: all(_gone(pid) for pid in pids))


def test_workers_that_a_killed_run_has_left_registered_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _Run(tmp_path)
    for process in before.group.processes:
        _kill(process)
    before.group.stop()
    assert list((tmp_path / "qwen3-8b-main" / "discovery").rglob("*instances/*")), "nothing was left"
    monkeypatch.setattr(simulated_kind, "worker_command", lambda *_: ["sleep", "600"])
    monkeypatch.setattr(simulated_kind.SimulatedKind, "ready_seconds", 2.0)
    with pytest.raises(NotReady, match="0 of 2 workers"), ProcessGroup() as group:
        LocalServing(build_plan(quickstart()), quickstart(), tmp_path, group).start(lambda _: None)


def test_a_worker_that_cannot_start_ends_the_start_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [sys.executable, "-c", "raise SystemExit('no such engine')"]
    monkeypatch.setattr(simulated_kind, "worker_command", lambda *_: broken)
    with ProcessGroup() as group:
        serving = LocalServing(build_plan(quickstart()), quickstart(), tmp_path, group)
        with pytest.raises(
            ProcessDied, match=r"(?s)worker \d of qwen3-8b-main exited with code 1.*no such engine"
        ):
            serving.start(lambda _: None)


def test_workers_that_never_register_are_counted_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_kind, "worker_command", lambda *_: ["sleep", "600"])
    monkeypatch.setattr(simulated_kind.SimulatedKind, "ready_seconds", 1.0)
    with ProcessGroup() as group:
        serving = LocalServing(build_plan(quickstart()), quickstart(), tmp_path, group)
        with pytest.raises(NotReady, match=r"frontend 1 of qwen3-8b-main .* 0 of 2 workers are registered"):
            serving.start(lambda _: None)


def test_a_port_that_is_taken_in_between_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, ProcessGroup() as group:
        monkeypatch.setattr(local_serving, "free_ports", lambda count: [taken.getsockname()[1]] * count)
        serving = LocalServing(build_plan(quickstart()), quickstart(), tmp_path, group, isolate=False)
        with pytest.raises(ProcessDied, match=r"frontend \d of qwen3-8b-main .*"):
            serving.start(lambda _: None)


def test_leaving_serving_ends_its_processes_and_no_others(tmp_path: Path) -> None:
    with ProcessGroup() as group:
        other = group.start(
            "other", ["sleep", "600"], environment=os.environ, log_path=tmp_path / "other.log"
        )
        with LocalServing(build_plan(quickstart()), quickstart(), tmp_path, group) as serving:
            serving.start(lambda _: None)
        for process in group.processes[1:]:
            process.popen.wait(_TIMEOUT)
        assert other.popen.poll() is None
