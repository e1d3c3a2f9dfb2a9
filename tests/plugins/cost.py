"""Prints the cost of a test run: number of tests, wall time, processor time, and the slowest files.

``--cost-file FILE`` also writes it as JSON, for `scripts/run_tests.py`, which adds up several processes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import pytest
from xdist.workermanage import WorkerController

_SHOWN_FILES = 5
_COST = "processor_seconds"
#: What a cost file calls an outcome, and what pytest calls it.
_OUTCOMES = {"passed": "passed", "failed": "failed", "errors": "error", "skipped": "skipped"}


@dataclass
class FileCost:
    """Sums over the tests of one file, including setup and teardown of fixtures."""

    tests: int = 0
    wall_seconds: float = 0.0
    processor_seconds: float = 0.0


class CostReport:
    """Adds up costs in the reporting process, which may differ from the process of the tests.

    file: Where to write the costs as JSON. None writes no file.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._begin = time.monotonic()
        self._files: dict[str, FileCost] = {}
        self._workers_seconds = 0.0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = self._files.setdefault(report.nodeid.partition("::")[0], FileCost())
        file.tests += report.when == "call"
        file.wall_seconds += report.duration
        file.processor_seconds += getattr(report, _COST, 0.0)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: WorkerController) -> None:
        # A crashed worker has no output.
        self._workers_seconds += getattr(node, "workeroutput", {}).get(_COST, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        files = self._files
        if self._file is not None:
            stats = terminalreporter.stats
            outcomes = {name: len(stats.get(key, ())) for name, key in _OUTCOMES.items()}
            costs = {name: asdict(cost) for name, cost in sorted(files.items())}
            tests = sum(file.tests for file in files.values())
            self._file.write_text(json.dumps({"tests": tests, "outcomes": outcomes, "files": costs}))
        slowest = sorted(files, key=lambda name: -files[name].wall_seconds)[:_SHOWN_FILES]
        own = tree_seconds() if not self._workers_seconds else time.process_time()
        terminalreporter.section("cost")
        tests, wall = sum(file.tests for file in files.values()), time.monotonic() - self._begin
        terminalreporter.line(
            f"{tests} tests, {wall:.0f} s wall, {own + self._workers_seconds:.0f} s processor; slowest files:"
        )
        for name in slowest:
            cost = files[name]
            terminalreporter.line(
                f"  {cost.wall_seconds:6.1f} s wall {cost.processor_seconds:6.1f} s processor  "
                f"{name} ({cost.tests} tests)"
            )


class CostMeter:
    """Measures costs in the process that runs the tests."""

    def __init__(self) -> None:
        self._before = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self._before = reaped_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        now = reaped_seconds()
        setattr(report, _COST, now - self._before)
        self._before = now
        return report


def reaped_seconds() -> float:
    """Processor time of this process and of its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def tree_seconds() -> float:
    """Processor time of this process and all its descendants, except orphans."""
    total = reaped_seconds()
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cost-file", type=Path, default=None, metavar="FILE", help="write the cost of the run as JSON"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CostMeter())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(CostReport(config.getoption("cost_file")))


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if output is not None:  # this is a process of pytest-xdist
        output[_COST] = tree_seconds()
