"""Workers that are told to end: before the signal, those whose server ends at once get no new requests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from inference_local.serving import running_workers
from inference_local.serving.local_deployment import WorkerPlace
from inference_local.serving.running_workers import PlacedWorker, RunningWorkers


class Group:
    """Counts the signals."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def end(self, process: Any) -> None:
        self.ended.append(process.name)


class Alarm:
    """A timer that rings when a test says so."""

    begun: ClassVar[list[Alarm]] = []

    def __init__(self, seconds: float, ring: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.seconds = seconds
        self.ring = partial(ring, *arguments)
        self.cancelled = False

    def start(self) -> None:
        self.begun.append(self)

    def cancel(self) -> None:
        self.cancelled = True

    def join(self) -> None:
        """There is no thread."""


@pytest.fixture(autouse=True)
def alarms(monkeypatch: pytest.MonkeyPatch) -> list[Alarm]:
    monkeypatch.setattr(running_workers, "Timer", Alarm)
    monkeypatch.setattr(Alarm, "begun", [])
    return Alarm.begun


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


def test_a_server_that_ends_at_once_leaves_the_load_balancer_before_its_signal(
    tmp_path: Path, alarms: list[Alarm]
) -> None:
    """It turns red if the signal comes at once, which cuts the streams of a server like llama.cpp's."""
    workers, worker, group, leaving = started(tmp_path, 3600.0)
    workers.end(worker)
    assert leaving.exists()
    assert group.ended == []
    assert workers.is_ending(worker)
    workers.cancel_signals()
    assert [alarm.cancelled for alarm in alarms] == [True]
    workers.begin(worker)
    assert not leaving.exists(), "one that starts again gets requests"


def test_the_signal_comes_after_the_wait(tmp_path: Path, alarms: list[Alarm]) -> None:
    workers, worker, group, _ = started(tmp_path, 4.5)
    workers.end(worker)
    [alarm] = alarms
    assert (alarm.seconds, group.ended) == (4.5, [])
    alarm.ring()
    assert group.ended == ["worker 1"]


def test_other_servers_get_the_signal_at_once(tmp_path: Path) -> None:
    workers, worker, group, leaving = started(tmp_path, 0.0)
    workers.end(worker)
    assert group.ended == ["worker 1"]
    assert not leaving.exists()
