"""Tasks that wait for a token end as in Step Functions: the gaps that `patches` closes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.local.emulator.state_machines import Machines, eventually, waiting_task

CAUGHT = {
    "Catch": [{"ErrorEquals": ["States.HeartbeatTimeout"], "Next": "Missed"}],
    "HeartbeatSeconds": 4,  # a pause of so long on a busy machine would end a task that gives signs of life
}
MISSED = {"Type": "Pass", "Output": "missed", "End": True}


@pytest.fixture(scope="module")
def machines(client: Callable[[str], Any]) -> Machines:
    return Machines(client)


def test_a_task_without_a_sign_of_life_times_out_and_its_token_is_gone(machines: Machines) -> None:
    queue = machines.queue()
    execution = machines.start({"Wait": waiting_task(**CAUGHT), "Missed": MISSED}, {"queue": queue})
    [message] = machines.received(queue)
    ended = machines.ended(execution)
    assert (ended["status"], json.loads(ended["output"])) == ("SUCCEEDED", "missed")
    with pytest.raises(
        (machines.states.exceptions.TaskTimedOut, machines.states.exceptions.TaskDoesNotExist)
    ):
        machines.states.send_task_success(taskToken=message["token"], output="0")


def test_signs_of_life_keep_a_task(machines: Machines) -> None:
    """The task outlives another one that began later and gives no sign of life."""
    states = {"Wait": waiting_task(**CAUGHT), "Missed": MISSED}
    kept, silent = (machines.queue(), machines.queue())
    execution = machines.start(states, {"queue": kept})
    [message] = machines.received(kept)
    later = machines.start(states, {"queue": silent})

    def has_missed() -> bool:
        machines.states.send_task_heartbeat(taskToken=message["token"])
        return bool(machines.states.describe_execution(executionArn=later)["status"] != "RUNNING")

    eventually(has_missed)
    machines.states.send_task_success(taskToken=message["token"], output='"kept"')
    assert json.loads(machines.ended(later)["output"]) == "missed"
    assert json.loads(machines.ended(execution)["output"]) == "kept"


def test_a_stopped_execution_lets_its_task_go(machines: Machines) -> None:
    queue = machines.queue()
    execution = machines.start({"Wait": waiting_task()}, {"queue": queue})
    [message] = machines.received(queue)
    machines.states.stop_execution(executionArn=execution)

    def is_let_go() -> bool:
        try:
            machines.states.send_task_heartbeat(taskToken=message["token"])
        except (machines.states.exceptions.TaskTimedOut, machines.states.exceptions.TaskDoesNotExist):
            return True
        return False

    assert eventually(is_let_go)
    assert machines.ended(execution)["status"] == "ABORTED"
