"""Workers that are told to end: before the signal, those whose server ends at once get no new requests."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from inference_blueprints.targets.local.local_deployment import WorkerPlace
from inference_blueprints.targets.local.placed_worker import PlacedWorker
from inference_blueprints.targets.local.running_workers import RunningWorkers


class Group:
    """Counts the signals."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def end(self, process: Any) -> None:
        self.ended.append(process.name)


def started(home: Path, seconds: float) -> tuple[RunningWorkers, Any, Group, Path]:
    launch = lambda *_: SimpleNamespace(command=[], environment={})  # noqa: E731 -- a stand-in of one line
    worker = SimpleNamespace(
        name="worker 1",
        workers=1,
        kind=SimpleNamespace(seconds_before_sigterm=seconds, launch=launch),
        deployment=SimpleNamespace(model=SimpleNamespace(name="m")),
    )
    group = Group()
    popen = SimpleNamespace(poll=lambda: None)
    workers = RunningWorkers(
        cast(Any, group), lambda name, _: cast(Any, SimpleNamespace(name=name, popen=popen))
    )
    placed = PlacedWorker(cast(Any, worker), WorkerPlace(home, "127.0.0.2", 9090))
    workers.place({worker.name: placed})
    workers.begin(cast(Any, worker))
    return workers, worker, group, placed.leaving


def test_a_server_that_ends_at_once_leaves_the_load_balancer_before_its_signal(tmp_path: Path) -> None:
    """It turns red if the signal comes at once, which cuts the streams of a server like llama.cpp's."""
    workers, worker, group, leaving = started(tmp_path, 3600.0)
    workers.end(worker)
    assert leaving.exists()
    assert group.ended == []
    assert workers.is_ending(worker)
    workers.cancel_signals()
    workers.begin(worker)
    assert not leaving.exists(), "one that starts again gets requests"


def test_the_signal_comes_after_the_wait(tmp_path: Path) -> None:
    workers, worker, group, _ = started(tmp_path, 0.01)
    workers.end(worker)
    deadline = time.monotonic() + 60
    while not group.ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert group.ended == ["worker 1"]


def test_other_servers_get_the_signal_at_once(tmp_path: Path) -> None:
    workers, worker, group, leaving = started(tmp_path, 0.0)
    workers.end(worker)
    assert group.ended == ["worker 1"]
    assert not leaving.exists()
