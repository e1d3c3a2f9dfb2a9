"""The plan counts with the numbers that batch works by."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from batch.api import requests
from batch.preparation import checking, cutting, estimate, segments
from batch.scheduling import scheduler
from batch.worker.settings import Settings
from inference_blueprints.planning import batch_design as design
from inference_constructs.batch import job_states
from inference_constructs.batch.job_states import JobResources, job_definition
from stacks import batch_stack

FUNCTIONS = ("segment", "check", "plan", "reject", "ask", "merge", "finish", "publish")
DEFAULTS = {each.name: each.metadata.get("default") for each in fields(Settings)}


@pytest.fixture
def machine() -> dict[str, Any]:
    return job_definition(JobResources({name: f"arn:{name}" for name in FUNCTIONS}, "bucket"))


def test_preparing() -> None:
    assert segments.SEGMENT_BYTES == design.SEGMENT_BYTES
    assert checking._RUN_BYTES == design.RUN_BYTES
    assert checking._BYTES_OF_A_LINE == design.BYTES_OF_A_HELD_LINE
    assert cutting.SHARD_TOKENS == design.SHARD_TOKENS
    assert cutting.SHARD_LINES == design.SHARD_LINES
    assert len(cutting._LENGTH_CLASSES) + 1 == design.LENGTH_CLASSES
    assert estimate._BYTES_PER_TOKEN == design.BYTES_PER_TOKEN


def test_working() -> None:
    assert DEFAULTS["in_flight_most"] == design.REQUESTS_A_WORKER
    assert DEFAULTS["flush_seconds"] == design.FLUSH_SECONDS * 1000
    assert DEFAULTS["flush_bytes"] * 1024 == design.FLUSH_BYTES
    assert DEFAULTS["heartbeat_seconds"] == design.HEARTBEAT_SECONDS
    assert batch_stack._SHARDS_A_WORKER == design.SHARDS_A_WORKER


def test_the_state_machine(machine: dict[str, Any]) -> None:
    assert job_states.SEGMENTS_AT_ONCE == design.SEGMENTS_AT_ONCE
    assert job_states.HEARTBEAT_SECONDS == design.TASK_HEARTBEAT_SECONDS
    assert job_states.LONGEST_SILENCE_SECONDS == design.LONGEST_SILENCE_SECONDS
    # All but the one that refuses a job, and the start.
    assert len(machine["States"].keys() - {"Reject"}) + 1 == design.STATES_OF_A_JOB
    children = [state["ItemProcessor"] for state in machine["States"].values() if state["Type"] == "Map"]
    assert len(children) == 3
    for child in children:
        assert len(child["States"]) + 1 == design.STATES_OF_A_CHILD
        assert [state["Output"] for state in child["States"].values()] == [{}]


def test_the_api_and_the_scheduler() -> None:
    assert requests.MOST_BYTES == design.UPLOAD_PART_BYTES
    assert scheduler.MOST_RESIZES == design.MOST_RESIZES
