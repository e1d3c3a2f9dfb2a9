"""`blueprints local up NAME --engines vllm`, as a user runs it: the report, the processes, and Ctrl-C."""

from __future__ import annotations

import html
import json
import re
import signal
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.resources import root
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan, Process
from tests.engines.running_processes import Difference, FoundProcess, differences, with_log
from tests.local.conftest import Run

pytestmark = [pytest.mark.engines, pytest.mark.timeout(5400)]

_NAMES = ("quickstart-g6e", "p5en-disaggregated")
#: Bounds a hang, not a speed.
_PATIENCE_SECONDS = 1800.0
_PART = re.compile(r"vLLM 0\.31\.0 on CPU, random weights; times mean nothing; \d+ of \d+ planned workers")
_NUMBERS = ("replicas", "elastic replicas", "nodes per worker")
_LOAD = "peakRequestsPerSecond of the replay"
#: All frontends have this row; in a network namespace, the first one has the planned port.
_PORT = "--http-port"
#: Words of the table of the page, and what the table of a report says.
_WORDS = {"left out": "left out", "set": "set", "the worker's own address": "127.0.0.x"}


class Up:
    """A run that has written its report and keeps running.

    name: The shipped blueprint.
    run: The command.
    """

    def __init__(self, name: str, run: Run) -> None:
        self.run = run
        self.plan = build_plan(load_blueprint(name).blueprint)
        self.report: dict[str, Any] = json.loads((run.run_directory / "report.json").read_text())
        self.page = (run.run_directory / "report.html").read_text()
        self._state = json.loads((run.run_directory / "state.json").read_text())

    @property
    def planned(self) -> list[tuple[DeploymentPlan, Process]]:
        """Every process of the plan with its deployment."""
        return [
            (deployment, process)
            for model in self.plan.models
            for deployment in model.deployments
            for process in (deployment.entry_point, *deployment.workers)
        ]

    @cached_property
    def found(self) -> dict[tuple[str, str], list[FoundProcess]]:
        """The processes that run, by release and name in the plan."""
        self.run.look()
        found: dict[tuple[str, str], list[FoundProcess]] = {}
        for deployment, process in self.planned:
            key = (deployment.release, process.name)
            logs = [
                Path(each["log_file"])
                for each in self._state["processes"]
                if (each["release"], each["process"]) == key
            ]
            found[key] = [with_log(self.run.seen, each, process.command) for each in logs]
        return found

    def rows(self, deployment: DeploymentPlan, process: Process) -> list[dict[str, str]]:
        """Return the rows of a process in the report's table of exceptions."""
        label = deployment.release if process.role == "worker" else f"{deployment.release}, {process.role}"
        return [each for each in self.report["replacements"] if each["workers"] == label]


@pytest.fixture(scope="module", params=_NAMES)
def up(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    options = (request.param, "--engines", "vllm", "--seconds", "5", "--keep")
    run = Run(tmp_path_factory.mktemp("up") / "run", *options, patience_seconds=_PATIENCE_SECONDS)
    try:
        run.wait_for("Press Ctrl-C to stop")
        yield Up(request.param, run)
    finally:
        run.process.terminate()
        run.process.wait(_PATIENCE_SECONDS)


def test_ctrl_c_while_engines_start_leaves_no_process(tmp_path: Path) -> None:
    """Ctrl-C while the engines start: the exit code is 130, and no process is left."""
    options = ("quickstart-g6e", "--engines", "vllm", "--seconds", "5")
    run = Run(tmp_path / "run", *options, patience_seconds=_PATIENCE_SECONDS)
    try:
        run.wait_for_process("VLLM::EngineCore")
        run.process.send_signal(signal.SIGINT)
        assert run.wait_for_end() == 130, run.output
        assert "Traceback" not in run.output
        assert run.processes_left() == []
    finally:
        run.process.terminate()
        run.process.wait(_PATIENCE_SECONDS)


def test_the_report_names_the_engines_and_has_no_times(up: Up) -> None:
    """The report and its page: engines are real vLLM on CPU, and there are no latencies or prices."""
    report = up.report
    engines = [each for each in report["parts"] if each["name"].startswith("Engines of")]
    assert engines
    for part in engines:
        assert part["state"] == "real"
        assert _PART.fullmatch(part["detail"]), part
        assert html.escape(part["detail"]) in up.page
    assert report["timed"] is False
    assert report["requests"] > 0
    assert report["failures"] == 0
    for figures in (report, *report["models"]):
        for latency in ("ttftMs", "timePerOutputTokenMs", "endToEndMs"):
            assert figures[latency] == {"p50": None, "p90": None, "p99": None}
        assert figures["throughputPerGpuTokensPerSecond"] is None
        assert figures["pricePerMillionTokensUsd"] is None
    assert "times mean nothing" in up.page
    assert "<svg" not in up.page
    assert not re.search(r"p90|\$ ?\d|tokens/s|per million tokens", up.page)


def test_processes_differ_from_the_plan_as_the_report_says(up: Up) -> None:
    """Arguments and variables of every process are the plan's, but for exactly the report's exceptions."""
    for deployment, process in up.planned:
        rows = [each for each in up.rows(deployment, process) if each["setting"] not in (*_NUMBERS, _PORT)]
        told = {Difference(each["setting"], each["planned"], each["here"]) for each in rows}
        assert len(told) == len(rows)
        assert all(each["reason"] for each in rows)
        processes = up.found[deployment.release, process.name]
        assert processes
        home = up.run.run_directory / "serving" / deployment.release
        for found in processes:
            seen = {each for each in differences(process, found, home) if each.setting != _PORT}
            assert seen == told


def test_every_worker_has_an_address_and_a_port_of_its_own(up: Up) -> None:
    """Workers have different loopback addresses, and frontends different ports."""
    addresses, ports = [], []
    for deployment, process in up.planned:
        for found in up.found[deployment.release, process.name]:
            if process is deployment.entry_point:
                ports.append(found.words[len(found.words) - found.words[::-1].index(_PORT)])
                [row] = [each for each in up.rows(deployment, process) if each["setting"] == _PORT]
                assert (row["planned"], row["here"]) == ("8000", "a free port")
            else:
                addresses.append(found.address)
    assert len(set(addresses)) == len(addresses)
    assert len(set(ports)) == len(ports)
    assert all(each.startswith("127.0.0.") for each in addresses)


def test_the_number_of_workers_is_planned_or_an_exception(up: Up) -> None:
    """As many workers of each role run as planned, or as the report says."""
    for deployment, process in up.planned:
        told = {
            each["setting"]: (each["planned"], each["here"])
            for each in up.rows(deployment, process)
            if each["setting"] in _NUMBERS
        }
        running = len(up.found[deployment.release, process.name])
        assert told == (
            {"replicas": (str(process.replicas), str(running))} if running != process.replicas else {}
        )


def test_the_page_of_the_report_has_every_exception(up: Up) -> None:
    """Each exception of the report is on its page, with both values and the reason."""
    for each in up.report["replacements"]:
        setting, *others = (html.escape(each[name]) for name in ("setting", "planned", "here", "reason"))
        cells = "".join(f"<td>{other}</td>" for other in others)
        assert f'<th scope="row">{setting}</th>{cells}' in up.page.replace("&#34;", "&quot;").replace(
            "&#39;", "&#x27;"
        )


def test_the_documentation_has_every_exception(up: Up) -> None:
    """Each exception of the report is in the table of `docs/real-engines.md`, with the same value."""
    text = (root() / "docs/real-engines.md").read_text(encoding="utf-8")
    table = text.partition("<!-- exceptions -->")[2].partition("<!-- end of exceptions -->")[0]
    documented: dict[str, str] = {}
    for line in table.splitlines():
        if found := re.match(r"\| `([^`]+)`[^|]* \| ([^|]+) \|", line):
            documented[found[1]] = found[2]
    for each in up.report["replacements"]:
        if each["setting"] in (*_NUMBERS, _LOAD):
            continue
        names = [
            name
            for name in documented
            if name == each["setting"] or (name.endswith("…") and each["setting"].startswith(name[:-1]))
        ]
        assert len(names) == 1, each
        words = documented[names[0]]
        if literal := re.fullmatch(r"`([^`]+)`", words):
            assert literal[1].replace("FOLDER", "…") == each["here"]
        elif words in _WORDS and "frontend" not in each["workers"]:
            assert _WORDS[words] == each["here"]


# The last test of each blueprint: nothing runs after it.
def test_ctrl_c_ends_it_and_leaves_no_process(up: Up) -> None:
    """Ctrl-C: the exit code is 0, and no process is left."""
    up.run.look()
    assert up.run.find("VLLM::EngineCore")
    up.run.process.send_signal(signal.SIGINT)
    assert up.run.wait_for_end() == 0, up.run.output
    assert "Traceback" not in up.run.output
    assert up.run.processes_left() == []
