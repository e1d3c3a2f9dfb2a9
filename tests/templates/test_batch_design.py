"""Figures that plans count with and that follow from the state machine and the worker's defaults."""

from __future__ import annotations

from typing import Any

import pytest

from batch.worker.settings import read_settings
from inference_constructs.batch.job_states import JobResources, job_definition
from inference_contracts import batch_limits

FUNCTIONS = ("segment", "check", "plan", "reject", "ask", "merge", "finish", "publish")


@pytest.fixture
def machine() -> dict[str, Any]:
    return job_definition(JobResources({name: f"arn:{name}" for name in FUNCTIONS}, "bucket"))


def test_states_of_a_job_and_of_a_child(machine: dict[str, Any]) -> None:
    # Every state but the one that rejects a job, and the start.
    assert len(machine["States"].keys() - {"Reject"}) + 1 == batch_limits.STATES_PER_JOB
    children = [state["ItemProcessor"] for state in machine["States"].values() if state["Type"] == "Map"]
    assert len(children) == 3
    for child in children:
        # Every state but the one in which a failed child ends, and the start.
        failed = {each["Next"] for state in child["States"].values() for each in state.get("Catch", [])}
        assert len(child["States"].keys() - failed) + 1 == batch_limits.STATES_PER_CHILD


def test_the_output_of_a_child_is_empty(machine: dict[str, Any]) -> None:
    maps = [state for state in machine["States"].values() if state["Type"] == "Map"]
    for each in maps:
        work = each["ItemProcessor"]["States"][each["ItemProcessor"]["StartAt"]]
        assert work["Output"] == {}
        # A child that fails adds its whole description to the result: a map that tolerates that has none.
        caught = [catcher["Output"] for catcher in work.get("Catch", [])]
        assert caught == ([{}] if "ToleratedFailurePercentage" in each else [])
    assert len(maps) == 3
    assert len("{},") == batch_limits.CHILD_OUTPUT_BYTES


def test_a_worker_without_settings_of_its_own_works_as_plans_count() -> None:
    """The units of the variables differ from those of the limits."""
    settings = read_settings(
        {"BATCH_QUEUE_URL": "q", "BATCH_BUCKET": "b", "BATCH_ENDPOINT": "http://e", "BATCH_MODEL": "m"}
    )
    assert settings.in_flight_most == batch_limits.REQUESTS_PER_WORKER
    assert settings.flush_seconds == batch_limits.FLUSH_SECONDS
    assert settings.flush_bytes == batch_limits.FLUSH_BYTES
    assert settings.heartbeat_seconds == batch_limits.WORKER_HEARTBEAT_SECONDS
    assert settings.visibility_seconds == batch_limits.VISIBILITY_SECONDS
