"""Measuring: in turns, as medians, whole processes."""

from __future__ import annotations

import sys

import pytest

from benchmarks.harness.figure import (
    BenchmarkError,
    cost,
    interleaved_medians,
    wall_seconds,
)
from benchmarks.harness.generated import generated_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint


def test_measurements_are_taken_in_turns_and_their_medians_returned() -> None:
    order: list[str] = []
    values = {"a": iter([1.0, 9.0, 2.0]), "b": iter([5.0, 5.0, 7.0])}

    def measure(name: str) -> float:
        order.append(name)
        return next(values[name])

    assert interleaved_medians([lambda: measure("a"), lambda: measure("b")], 3) == [2.0, 5.0]
    assert order == ["a", "b"] * 3


@pytest.mark.clock
def test_a_process_that_fails_has_no_time() -> None:
    with pytest.raises(BenchmarkError, match="ended with 3"):
        wall_seconds([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(BenchmarkError, match="ended with"):
        cost([sys.executable, "-c", "raise SystemExit(3)"])


@pytest.mark.clock
def test_peak_memory_is_that_of_the_process_alone() -> None:
    small = [sys.executable, "-S", "-c", "pass"]
    large = [sys.executable, "-S", "-c", "block = b'x' * (200 << 20)"]
    assert cost(large).memory_mib > 200
    assert cost(small).memory_mib < 100


@pytest.mark.parametrize(("pools", "models"), [(1, 1), (5, 4), (3, 7), (50, 40)])
def test_generated_blueprints_are_valid_and_of_the_size_asked_for(pools: int, models: int) -> None:
    blueprint = Blueprint.model_validate(generated_blueprint(pools, models))
    plan = build_plan(blueprint)
    assert (len(blueprint.spec.pools), len(plan.models)) == (pools, models)


@pytest.mark.clock
def test_processor_time_leaves_waiting_out() -> None:
    waiting = [sys.executable, "-S", "-c", "import time; time.sleep(0.5)"]
    working = [sys.executable, "-S", "-c", "import time\nwhile time.process_time() < 0.5: pass"]
    assert cost(waiting).processor_seconds < 0.4
    assert cost(working).processor_seconds >= 0.5
