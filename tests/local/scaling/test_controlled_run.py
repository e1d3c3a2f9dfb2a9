"""The run of capacity-and-health, with short ramps: batch beside interactive requests, and a slow worker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from tests.local.conftest import Run
from tests.unit.local.report.schema import SCHEMA

pytestmark = pytest.mark.controllers
RAMP_SECONDS = 20


@pytest.fixture(scope="module")
def controlled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    options = ("capacity-and-health", "--seconds", str(RAMP_SECONDS), "--full")
    run = Run(tmp_path_factory.mktemp("controlled") / "run", *options)
    try:
        for step in range(2, 9):
            run.wait_for(f"[{step}/8]")
        assert run.wait_for_end() == 0, run.output
        yield run
    finally:
        run.process.terminate()
        run.process.wait(60)


@pytest.fixture(scope="module")
def report(controlled: Run) -> Any:
    document = json.loads((controlled.run_directory / "report.json").read_text())
    jsonschema.validate(document, SCHEMA)
    return document


def test_the_slow_worker_is_found_drained_and_replaced_without_a_cut_stream(report: Any) -> None:
    health = report["gpuHealth"]
    assert (health["injected"], health["found"], health["replaced"]) == (1, 1, 1)
    assert (health["falseDrains"], health["cutStreams"], health["failedRuns"]) == (0, 0, 0)
    assert health["replacementRequests"] > 0
    assert health["replacement"] != health["node"]
    order = ("slowed", "confirmed", "cordoned", "draining", "replacing", "done")
    times = [health["times"][state] for state in order]
    assert times == sorted(times)
    assert health["secondsToServing"] == pytest.approx(times[-1] - times[0])


def test_capacity_moves_and_no_request_of_batch_is_lost(report: Any) -> None:
    shift = report["capacityShift"]
    assert shift["failedRuns"] == 0
    assert shift["batchLost"] == 0
    assert shift["batchCompleted"] == report["batch"][0]["requests"] > 0
    assert len({each["batchPlaces"] for each in shift["decisions"]}) > 1
    assert len({each["floor"] for each in shift["decisions"]}) > 1
    assert max(each["batch"] for each in shift["load"]) > 0
    assert shift["ttftP95Ratio"] > 0


def test_the_floors_are_kept_by_the_decisions_of_keda(report: Any) -> None:
    reasons = [each["reason"] for each in report["scaling"]["decisions"]]
    assert "the floor of the capacity shift" in reasons


def test_the_functions_ran_as_they_are_deployed(controlled: Run) -> None:
    for name in ("health", "shift"):
        settings = json.loads((controlled.run_directory / "controllers" / f"{name}.json").read_text())
        assert settings["answers"].startswith("http://127.0.0.1:")
    log = (controlled.run_directory / "controllers" / "health.log").read_text()
    assert '"NodesReplaced"' in log  # the metrics of the function, as CloudWatch would read them


def test_the_page_and_the_summary_have_both_parts(controlled: Run) -> None:
    page = (controlled.run_directory / "report.html").read_text()
    for title in ("Workers by owner (simulated)", "The slow worker beside its peers (simulated)"):
        assert title in page
    text = " ".join(controlled.output.split())
    assert "Capacity shift (simulated)" in text
    assert "GPU health (simulated): 1 worker slowed to 50% of its speed, 1 found, 1 replaced" in text
