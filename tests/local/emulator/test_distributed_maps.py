"""Distributed maps do on the emulator what Step Functions does: the gaps that `patches` closes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.local.emulator.state_machines import Machines, eventually, waiting_task


@pytest.fixture(scope="module")
def machines(client: Callable[[str], Any]) -> Machines:
    return Machines(client)


def distributed_map(work: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "Type": "Map",
        "Label": "Each",
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSONL"},
            "Arguments": {"Bucket": "{% $states.input.bucket %}", "Key": "{% $states.input.key %}"},
        },
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "Work",
            "States": {"Work": work},
        },
        "End": True,
        **fields,
    }


def test_items_are_read_and_selected_and_the_output_is_given_by_expressions(machines: Machines) -> None:
    state = distributed_map(
        {"Type": "Pass", "End": True},
        ItemSelector={
            "twice": "{% $states.context.Map.Item.Value.number * 2 %}",
            "place": "{% $states.context.Map.Item.Index %}",
            "given": "{% $states.input.given %}",
        },
        Output={"children": "{% $states.result %}", "given": "{% $states.input.given %}"},
    )
    where = machines.upload([{"number": 7}, {"number": 9}])
    ended = machines.ended(machines.start({"Map": state}, {**where, "given": "word"}))
    assert ended["status"] == "SUCCEEDED", ended
    children = [{"twice": 14, "place": 0, "given": "word"}, {"twice": 18, "place": 1, "given": "word"}]
    assert json.loads(ended["output"]) == {"children": children, "given": "word"}


def test_the_results_of_all_children_have_a_limit(machines: Machines) -> None:
    """DATA_LIMIT: red if a definition that keeps the results of its children passes here only."""
    where = machines.upload([{"text": "x" * 140_000}] * 2)
    kept = machines.ended(machines.start({"Map": distributed_map({"Type": "Pass", "End": True})}, where))
    assert (kept["status"], kept.get("error")) == ("FAILED", "States.DataLimitExceeded"), kept
    dropped = distributed_map({"Type": "Pass", "Output": {}, "End": True})
    assert machines.ended(machines.start({"Map": dropped}, where))["status"] == "SUCCEEDED"


def test_a_map_begins_with_the_concurrency_of_its_expression_and_follows_its_run(machines: Machines) -> None:
    state = distributed_map(
        waiting_task(),
        ItemSelector={"queue": "{% $states.input.queue %}", "item": "{% $states.context.Map.Item.Value %}"},
        MaxConcurrency="{% $states.input.most %}",
    )
    queue = machines.queue()
    where = machines.upload([{"number": number} for number in range(5)])
    execution = machines.start({"Map": state}, {**where, "queue": queue, "most": 1})
    sent = machines.received(queue)
    assert len(sent) == 1
    assert machines.is_silent(queue)
    [run] = machines.states.list_map_runs(executionArn=execution)["mapRuns"]
    described = machines.states.describe_map_run(mapRunArn=run["mapRunArn"])
    assert described["maxConcurrency"] == 1
    machines.states.update_map_run(mapRunArn=run["mapRunArn"], maxConcurrency=3)
    sent += machines.received(queue, 2)
    assert len(sent) == 3
    assert machines.is_silent(queue)
    for message in sent:
        machines.states.send_task_success(taskToken=message["token"], output="0")
    rest = machines.received(queue, 2)
    assert len(rest) == 2
    for message in rest:
        machines.states.send_task_success(taskToken=message["token"], output="0")
    assert machines.ended(execution)["status"] == "SUCCEEDED"
    assert sorted(each["input"]["item"]["number"] for each in sent + rest) == [0, 1, 2, 3, 4]


def test_children_of_a_stopped_execution_are_let_go_and_not_tried_again(machines: Machines) -> None:
    retry = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "BackoffRate": 1, "MaxAttempts": 9}
    state = distributed_map(waiting_task(Retry=[retry]), ItemSelector={"queue": "{% $states.input.queue %}"})
    queue = machines.queue()
    execution = machines.start({"Map": state}, {**machines.upload([1, 2]), "queue": queue})
    sent = machines.received(queue, 2)
    machines.states.stop_execution(executionArn=execution)
    for message in sent:
        eventually(partial(is_let_go, machines, message["token"]))
    assert machines.is_silent(queue, seconds=2)  # a retry would come after one
    assert machines.ended(execution)["status"] == "ABORTED"


def is_let_go(machines: Machines, token: str) -> bool:
    try:
        machines.states.send_task_heartbeat(taskToken=token)
    except (machines.states.exceptions.TaskTimedOut, machines.states.exceptions.TaskDoesNotExist):
        return True
    return False
