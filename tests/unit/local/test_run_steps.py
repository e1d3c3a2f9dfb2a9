"""Steps are readable in a log, and move in a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_local import run_steps
from inference_local.run import _load_titles
from inference_local.run_scope import RunScope
from inference_local.run_steps import Step, Steps
from inference_local.serving.simulated_kind import SimulatedKind

TITLES = ("Write templates", "Deploy", "Replay", "Kill workers")


@pytest.fixture(autouse=True)
def outside_of_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def show(*, terminal: bool, width: int = 80) -> str:
    stream = io.StringIO()
    steps = Steps(Console(file=stream, force_terminal=terminal, width=width), TITLES)
    with steps.step("Write templates") as step:
        step.update(3, 7, "Network")
        step.result = "7 [templates]"
    with steps.step("Deploy") as step:
        step.tell("etcd: building, 30 s so far")
    return stream.getvalue()


def test_without_a_terminal_each_step_is_plain_lines() -> None:
    lines = show(terminal=False).splitlines()
    assert lines[0] == "[1/4] Write templates ..."
    assert lines[1].startswith("[1/4] Write templates: 7 [templates] (")
    assert lines[2:3] == ["[2/4] Deploy ..."]
    assert lines[3] == "  etcd: building, 30 s so far"
    assert lines[4].startswith("[2/4] Deploy (")


def test_a_terminal_of_continuous_integration_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A display that overwrites itself fills the log of a job with control characters."""
    monkeypatch.setenv("CI", "true")
    assert "[1/4] Write templates ..." in show(terminal=True)


def test_a_terminal_shows_what_is_done_runs_and_follows() -> None:
    shown = show(terminal=True)
    for expected in ("[done]  Write templates: 7 [templates]", "[ 43%]  Write templates", "Network"):
        assert expected in shown
    for following in TITLES[1:]:
        assert f"[    ]  {following}" in shown
    assert "etcd: building" in shown


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """A line that the terminal wraps stays behind when the display is drawn again."""
    stream = io.StringIO()
    steps = Steps(Console(file=stream, force_terminal=True, width=width, color_system=None), TITLES)
    title = "Replay a public trace against the models and count all of its tokens"
    with steps.step(title) as step:
        step.update(detail="worker-of-a-deployment-with-a-long-name " * 4)
        lines = steps._lines(step, TITLES).plain.splitlines()
        step.result = "http://127.0.0.1:9090 and more words"
    assert max(map(len, lines)) < width
    done = stream.getvalue().rpartition("[done]")[2]
    assert max(map(len, done.splitlines())) < width
    assert "http://127.0.0.1:9090" in done, "an address is not cut"


@pytest.mark.parametrize("width", [1, 8, 12])
def test_a_terminal_without_room_ends_no_run(width: int) -> None:
    """A width below that of the marks ended the run with an error of the text's format."""
    assert "[done]" in show(terminal=True, width=width)


def test_the_rest_of_a_step_is_reckoned_from_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 130.0, 130.0])
    monkeypatch.setattr("inference_local.run_steps.time.monotonic", lambda: next(times))
    step = Step("Replay", None)
    step.update(1, 100)
    assert step.progress == "0:30", "too early to reckon"
    step.update(50, 200, "3 in flight")
    assert (step.mark, step.progress) == ("[ 25%]", "3 in flight  1:30 left")


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("quickstart-g6e", (run_steps.REPLAY, run_steps.KILLS)),
        ("ecs-g6e", (run_steps.REPLAY, run_steps.KILLS)),
        ("batch-g6e", (run_steps.REPLAY, run_steps.BATCH_JOBS, run_steps.KILLS)),
        ("elastic-g6e", (run_steps.PROMETHEUS, run_steps.REPLAY)),
        (
            "capacity-and-health",
            (run_steps.PROMETHEUS, run_steps.TWO_RAMPS, run_steps.SLOW_WORKER, run_steps.BATCH_BESIDE),
        ),
        ("real-time", (run_steps.REPLAY, run_steps.PAGES, run_steps.KILLS)),
        ("streaming-g6e", (run_steps.REPLAY, run_steps.CLICKS, run_steps.KILLS)),
    ],
)
def test_the_models_come_first_whatever_the_blueprint_has(name: str, titles: tuple[str, ...]) -> None:
    """A number of steps that a run does not reach looks like a run that was cut off."""
    loaded = load_blueprint(name)
    kind = SimulatedKind(loaded.blueprint)
    scope = RunScope(loaded.blueprint, build_plan(loaded.blueprint), kind, control_plane=False)
    first = (
        "Start the router and the simulated engines",
        run_steps.TEMPLATES,
        run_steps.EMULATOR,
        run_steps.STACKS,
    )
    assert scope.step_titles == first
    assert tuple(_load_titles(scope)) == titles
