"""Steps are readable in a log, and move in a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from inference_local.run_steps import Steps


def show(*, terminal: bool) -> str:
    stream = io.StringIO()
    steps = Steps(Console(file=stream, force_terminal=terminal, width=80), 2)
    with steps.step("Write templates") as step:
        step.update(3, 7, "Network")
        step.result = "7 [templates]"
    with steps.step("Deploy") as step:
        step.tell("etcd: building, 30 s so far")
    return stream.getvalue()


def test_without_a_terminal_each_step_is_plain_lines() -> None:
    lines = show(terminal=False).splitlines()
    assert lines[0] == "[1/2] Write templates ..."
    assert lines[1].startswith("[1/2] Write templates: 7 [templates] (")
    assert lines[2:3] == ["[2/2] Deploy ..."]
    assert lines[3] == "  etcd: building, 30 s so far"
    assert lines[4].startswith("[2/2] Deploy (")


def test_a_narrow_terminal_wraps_the_last_line_of_a_step_at_words() -> None:
    stream = io.StringIO()
    Steps(Console(file=stream, force_terminal=True, width=30), 1).say(
        "[1/1] Start Prometheus: http://127.0.0.1:9090"
    )
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert lines == ["[1/1] Start Prometheus:", "http://127.0.0.1:9090"]


def test_in_a_terminal_the_bar_shows_what_is_happening() -> None:
    shown = show(terminal=True)
    assert "Network" in shown
    assert "etcd: building" in shown
