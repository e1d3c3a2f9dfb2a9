"""The stand-in for Dynamo's operator: workers start after their cold start, and go by SIGTERM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from inference_local.scaling.operator_stand_in import ElasticRole, OperatorStandIn
from tests.unit.local.scaling.fake_workers import FakeWorkers

KIND = SimpleNamespace(name="worker")
START_SECONDS = 10.0


def stand_in(running: int, places: int = 4) -> tuple[OperatorStandIn, FakeWorkers]:
    workers = FakeWorkers([SimpleNamespace(name=str(index), kind=KIND) for index in range(places)])
    workers.running = {str(index) for index in range(running)}
    role = ElasticRole(cast(Any, None), cast(Any, KIND), START_SECONDS)
    return OperatorStandIn(cast(Any, workers), role), workers


def test_a_worker_runs_after_its_cold_start_and_holds_its_accelerators_before() -> None:
    operator, workers = stand_in(2)
    operator.step(0.0, 3)
    assert (workers.running, operator.occupying) == ({"0", "1"}, 3)
    operator.step(START_SECONDS - 1, 3)
    assert workers.running == {"0", "1"}
    operator.step(START_SECONDS, 3)
    assert (workers.running, operator.serving, operator.occupying) == ({"0", "1", "2"}, 3, 3)


def test_the_youngest_goes_and_its_place_is_taken_until_it_has_ended() -> None:
    operator, workers = stand_in(4)
    operator.step(0.0, 3)
    assert (workers.ending, operator.serving, operator.occupying) == ({"3"}, 3, 4)
    operator.step(1.0, 4)  # no place is free
    operator.step(1.0 + START_SECONDS, 4)
    assert workers.running == {"0", "1", "2"}
    workers.ending.clear()
    operator.step(20.0, 4)
    operator.step(20.0 + START_SECONDS, 4)
    assert workers.running == {"0", "1", "2", "3"}


def test_a_worker_that_still_starts_goes_first() -> None:
    operator, workers = stand_in(2)
    operator.step(0.0, 4)
    operator.step(1.0, 2)
    operator.step(START_SECONDS, 2)
    assert (workers.running, workers.ending, operator.occupying) == ({"0", "1"}, set(), 2)
