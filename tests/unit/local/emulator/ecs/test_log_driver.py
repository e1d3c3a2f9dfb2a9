"""The log driver sends whole lines of containers, each once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference_blueprints.local.emulator.ecs.agent.log_driver import LogDriver

OPTIONS = {"awslogs-group": "/platform", "awslogs-stream-prefix": "metrics"}
CONTAINER = {"name": "targets", "logConfiguration": {"logDriver": "awslogs", "options": OPTIONS}}
PATIENCE_SECONDS = 30.0


class Sent:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []
        self.driver = LogDriver(self._take)

    def _take(self, group: str, stream: str, lines: list[str]) -> None:
        self.lines += [(group, stream, line) for line in lines]

    def wait(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.lines) < number:
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.05)


@pytest.fixture
def sent() -> Iterator[Sent]:
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
