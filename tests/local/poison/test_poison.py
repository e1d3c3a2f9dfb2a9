"""One request that ends workers, sent to Dynamo's real frontend behind its filter, beside 200 others."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.measure.tokenizer import write_model_directory
from inference_blueprints.resources import root
from inference_local.processes.child_processes import ProcessGroup, log_tail
from inference_local.serving.isolation import open_isolation, started_in
from tests.local.poison import driver

pytestmark = [pytest.mark.clock, pytest.mark.timeout(600)]

PATIENCE_SECONDS = 480.0


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened to one platform."""
    folder = tmp_path_factory.mktemp("poison")
    (folder / "discovery").mkdir()
    write_model_directory(catalog.model("Qwen/Qwen3-8B"), folder / "model")
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{root()}:{root() / 'runtime'}"}
    with ProcessGroup() as processes:
        isolation = open_isolation(started_in(processes, folder / "network.log"))
        command = isolation.command([sys.executable, "-m", driver.__name__, str(folder)])
        run = processes.start("poison", command, environment=variables, log_path=folder / "driver.log")
        assert run.popen.wait(PATIENCE_SECONDS) == 0, log_tail(folder / "driver.log")
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def test_one_request_ends_two_workers_at_most(result: dict[str, Any]) -> None:
    """Red with a migration limit of three (four deaths by one try), or without suspects (two by each try)."""
    assert result["tries"] > 10
    assert result["deaths"] == 2
    assert "suspected_of_worker_deaths" in result["codes"]


def test_all_bystanders_are_answered(result: dict[str, Any]) -> None:
    """Red if a request that only shared workers with the deadly one is refused for good."""
    assert result["answered"] == 200
    assert result["other"]


def test_a_deadly_line_of_a_job_ends_in_the_error_file(result: dict[str, Any]) -> None:
    """Red if batch asks again what the filter has found out, or gives a line up that only ran beside it.

    An attempt ends two workers, because Dynamo moves it once. Two attempts are enough, and one more if the
    workers start for longer than the filter refuses; without the filter's word there are five.
    """
    [(line, error)] = result["batch"]["errors"]
    assert result["batch"]["answered"] == 200
    assert (line, error["code"]) == ("0/0", "endpoint_error")
    assert "it may end the model's workers" in error["message"]
    assert result["batch"]["deaths"] < 2 * 5


def test_a_rollout_makes_no_suspects(result: dict[str, Any]) -> None:
    """Red if drains count as deaths: the long request moves, and would be refused."""
    assert result["drained"] == {"answered": True, "status": 200, "code": None}
    assert result["noted"] == 2


def test_a_caller_that_hangs_up_stops_its_worker(result: dict[str, Any]) -> None:
    """Red if the filter keeps a request alive whose caller has gone."""
    assert result["stopped"]


def test_callers_reach_neither_a_worker_of_their_choice_nor_an_operator_s_page(
    result: dict[str, Any],
) -> None:
    """Red if `x-dynamo-worker-instance-id` pins eight of eight requests, or `/busy_threshold` answers."""
    assert result["workers_asked"] > 1
    assert result["busy_threshold"] == 404


def test_the_frontend_ends_when_it_is_told_to(result: dict[str, Any]) -> None:
    """Red if the filter does not pass SIGTERM on, and each rollout waits for SIGKILL."""
    assert result["exit"] in (0, 143)
