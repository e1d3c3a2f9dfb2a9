"""The log driver sends whole lines of containers, each once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference_local.emulator.ecs.agent import log_driver
from inference_local.emulator.ecs.agent.log_driver import LogDriver

OPTIONS = {"awslogs-group": "/platform", "awslogs-stream-prefix": "metrics"}
CONTAINER = {"name": "targets", "logConfiguration": {"logDriver": "awslogs", "options": OPTIONS}}
#: It ends a test that hangs.
PATIENCE_SECONDS = 240.0


class Sent:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []
        self._came = threading.Condition()
        self.driver = LogDriver(self._take)

    def _take(self, group: str, stream: str, lines: list[str]) -> None:
        with self._came:
            self.lines += [(group, stream, line) for line in lines]
            self._came.notify_all()

    def wait(self, number: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.lines) >= number, PATIENCE_SECONDS), self.lines


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sent]:
    monkeypatch.setattr(log_driver, "_LOOK_SECONDS", 0.001)
    found = Sent()
    yield found
    found.driver.close()


def test_whole_lines_go_to_the_stream_of_the_container(sent: Sent, tmp_path: Path) -> None:
    # Amazon ECS Developer Guide, using_awslogs.html: prefix-name/container-name/ecs-task-id.
    log = tmp_path / "log"
    sent.driver.follow(log, CONTAINER, "task-1")
    log.write_text("first\nsecond\nhalf of the th")
    sent.wait(2)
    with log.open("a") as file:
        file.write("ird\n")
    sent.wait(3)
    assert sent.lines == [
        ("/platform", "metrics/targets/task-1", line) for line in ("first", "second", "half of the third")
    ]


def test_what_an_ended_task_wrote_last_is_sent_and_nothing_after_it(sent: Sent, tmp_path: Path) -> None:
    log = tmp_path / "log"
    sent.driver.follow(log, CONTAINER, "task-1")
    log.write_text("last\n")
    sent.driver.forget("task-1")
    assert [line for _, _, line in sent.lines] == ["last"]


def test_a_container_with_another_driver_is_not_followed(sent: Sent, tmp_path: Path) -> None:
    log = tmp_path / "log"
    sent.driver.follow(log, {"name": "quiet"}, "task-1")
    log.write_text("a line\n")
    sent.driver.forget("task-1")
    assert sent.lines == []
