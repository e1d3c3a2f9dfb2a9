"""The host's copy of a model: it is filled once, and an engine that uses it keeps it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from task_start.task_credentials import with_task_credentials

from inference_blueprints.resources import root
from tests.runtime.task_start.conftest import Agent, Start, TasksHere, wait_for_lock
from tests.runtime.weights.fake_hub import COMMIT, FakeHub, FakeModel
from weights.node_store import NodeStore, NodeStoreError

ENTRY = f"weights/acme--model@{COMMIT}"
GIB = 2**30


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        running.models["acme/model"] = FakeModel({"config.json": b"{}", "model.safetensors": bytes(1000)})
        yield running


def fill(hub: FakeHub, folder: Path, ready: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "task_start.node_fill"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(root() / "runtime"),
            "HF_ENDPOINT": hub.endpoint,
            "NODE_CACHE_FOLDER": str(folder),
            "NODE_CACHE_GIB": "1",
            "NODE_CACHE_COMPILED": "release",
            "NODE_CACHE_WEIGHTS": ENTRY.partition("/")[2],
            "NODE_CACHE_READY_FILE": str(ready),
            "WEIGHTS_REPOSITORY": "acme/model",
            "WEIGHTS_REVISION": COMMIT,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def deleted(folder: Path) -> bool:
    """Ask for more room than is left beside the entry; return whether the entry had to go."""
    store = NodeStore(folder, GIB)
    lock = store.lock("weights/other", exclusive=True)
    try:
        store.reserve("weights/other", GIB)
    except NodeStoreError:
        return False
    else:
        return True
    finally:
        lock.release()


@pytest.mark.clock
def test_an_engine_keeps_the_copy_until_it_is_killed(hub: FakeHub, start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    result = fill(hub, folder, tmp_path / "ready")
    assert result.returncode == 0, result.stderr
    assert (folder / ENTRY / "model.safetensors").stat().st_size == 1000
    locks = {"folder": str(folder), "entries": [ENTRY, "compiled/release"]}
    tasks = [start({"network": "host", "locks": locks}) for _ in range(2)]
    for task in tasks:
        task.heard()
    assert not deleted(folder)
    tasks[0].process.kill()
    tasks[0].end()
    assert not deleted(folder)
    tasks[1].process.kill()
    tasks[1].end()
    assert deleted(folder)
    late = start({"network": "host", "locks": locks})
    assert late.end() == 2
    assert "is not complete; the next task copies it again" in late.errors()


@pytest.mark.clock
def test_an_engine_waits_while_another_task_fills_the_copy(
    hub: FakeHub, start: Start, tmp_path: Path
) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    filling = NodeStore(folder, GIB).lock(ENTRY, exclusive=True)
    task = start({"network": "host", "locks": {"folder": str(folder), "entries": [ENTRY]}})
    wait_for_lock(task.process)
    (folder / "complete" / f"{ENTRY.replace('/', '--')}.json").write_text(json.dumps({"files": []}))
    filling.release()
    assert task.heard()


def test_a_copy_that_nobody_made_is_an_error(
    here: TasksHere, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.start({"network": "host", "locks": {"folder": str(tmp_path), "entries": [ENTRY]}}) == 2
    assert f"{tmp_path / ENTRY} was not copied to this host" in capsys.readouterr().err


def test_what_an_engine_uses_is_not_deleted(here: TasksHere, tmp_path: Path) -> None:
    store = NodeStore(tmp_path, GIB)
    lock = store.lock(ENTRY, exclusive=True)
    store.reserve(ENTRY, 1000)
    (tmp_path / "complete" / f"{ENTRY.replace('/', '--')}.json").write_text(json.dumps({"files": []}))
    lock.release()
    here.prepare({"network": "host", "locks": {"folder": str(tmp_path), "entries": [ENTRY]}})
    assert not deleted(tmp_path)


@pytest.mark.clock
def test_an_interrupted_source_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    with FakeHub() as empty:
        result = fill(empty, tmp_path, tmp_path / "ready")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("error: ")


def test_credentials_of_the_task_reach_the_reader_of_the_bucket(agent: Agent) -> None:
    relative = {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/1", "A": "b"}
    assert with_task_credentials(relative) == {
        **relative,
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2/v2/credentials/1",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/dev/null",
    }
    assert with_task_credentials(agent.variables()) == agent.variables()
