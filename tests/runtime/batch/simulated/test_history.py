"""Shards leave as many events in the history of a child execution as quotas are computed with."""

from __future__ import annotations

from typing import Any

import pytest
import simpy

from inference_blueprints.contracts.batch_limits import EVENTS_PER_CHILD, EVENTS_PER_TASK_TIMEOUT
from inference_constructs.batch.job_states import JobResources, job_definition
from tests.runtime.batch.simulated.state_machine import Execution, Limits, Machine, Outside, Process

FUNCTIONS = ("segment", "check", "plan", "reject", "ask", "merge", "finish")


def shard_execution(silent_workers: int) -> Execution:
    """Run a child execution of the shipped definition whose first workers send no heartbeat."""
    definition = job_definition(JobResources({name: name for name in FUNCTIONS}, "bucket"))
    env = simpy.Environment()
    messages: list[Any] = []

    def send(_queue: str, message: Any) -> None:
        messages.append(message)
        if len(messages) > silent_workers:
            env.process(answer(message["taskToken"]))

    def answer(token: str) -> Process:
        yield env.timeout(1)
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
    assert len(messages) == silent_workers + 1
    return machine.executions["child"]


@pytest.mark.parametrize("silent_workers", [0, 1, 7])
def test_each_missed_heartbeat_adds_the_same_events(silent_workers: int) -> None:
    child = shard_execution(silent_workers)
    assert child.status == "SUCCEEDED"
    assert child.events == EVENTS_PER_CHILD + silent_workers * EVENTS_PER_TASK_TIMEOUT
