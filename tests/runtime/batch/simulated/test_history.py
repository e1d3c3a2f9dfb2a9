"""What child executions of shards leave: events in their history, and their part of the map's result."""

from __future__ import annotations

import json
from typing import Any

import pytest
import simpy

from inference_constructs.batch.job_states import JobResources, job_definition
from inference_contracts.batch_limits import (
    CHILD_OUTPUT_BYTES,
    EVENTS_PER_CHILD,
    EVENTS_PER_TASK_TIMEOUT,
)
from inference_contracts.batch_names import PERMANENT_ERRORS
from tests.runtime.batch.simulated.state_machine import Execution, Limits, Machine, Outside, Process

FUNCTIONS = ("segment", "check", "plan", "reject", "ask", "merge", "finish")


def shard_execution(silent_workers: int = 0, *, fails: bool = False) -> Execution:
    """Run a child execution of the shipped definition whose first workers send no heartbeat.

    fails: Whether all other workers report that the shard is impossible.
    """
    definition = job_definition(JobResources({name: name for name in FUNCTIONS}, "bucket"))
    env = simpy.Environment()
    messages: list[Any] = []

    def send(_queue: str, message: Any) -> None:
        messages.append(message)
        if len(messages) > silent_workers:
            env.process(answer(message["taskToken"]))

    def answer(token: str) -> Process:
        yield env.timeout(1)
        if fails:
            machine.fail(token, PERMANENT_ERRORS[0])
        else:
            machine.succeed(token, {})

    def refuse(name: str, _payload: Any) -> Process:
        raise AssertionError(f"a shard calls no function, got {name}")
        yield

    outside = Outside(call=refuse, send=send, read=lambda _key: [])
    machine = Machine(
        env,
        definition["States"]["Shards"]["ItemProcessor"],
        outside,
        limits=Limits(history_events=25_000, child_starts_per_second=1),
    )
    machine.start("child", {"job": "j1", "shard": "00000", "queueUrl": "queue"})
    env.run()
    assert len(messages) == silent_workers + (2 if fails else 1)
    return machine.executions["child"]


@pytest.mark.parametrize("silent_workers", [0, 1, 7])
def test_each_missed_heartbeat_adds_the_same_events(silent_workers: int) -> None:
    child = shard_execution(silent_workers)
    assert child.status == "SUCCEEDED"
    assert child.events == EVENTS_PER_CHILD + silent_workers * EVENTS_PER_TASK_TIMEOUT


@pytest.mark.parametrize("fails", [False, True])
def test_a_shard_adds_the_same_to_the_result_of_the_map_whether_it_fails_or_not(*, fails: bool) -> None:
    # The description of a child that fails would be part of the result, about a thousand bytes of 256 KiB
    # (Step Functions Developer Guide, "ResultWriter").
    child = shard_execution(fails=fails)
    assert child.status == "SUCCEEDED"
    assert len(json.dumps(child.output)) + len(",") == CHILD_OUTPUT_BYTES
