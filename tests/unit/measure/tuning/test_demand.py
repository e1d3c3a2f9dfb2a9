"""What is replayed: long enough for answers of their length, and nothing that no worker accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from inference_blueprints.measure.simulation.offline_replay import RecordedRequest
from inference_blueprints.measure.tuning.replayed_workload import (
    ANSWERS,
    RecordedWorkload,
    Series,
    long_enough,
    recorded_workload,
)
from inference_blueprints.measure.tuning.traces import BLOCK_TOKENS, read_trace
from inference_blueprints.measure.tuning.tune import Stores, demand_of, tune
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError
from tests.unit.measure.tuning.conftest import Silent

_SHORT = "outputTokens: 100, peakRequestsPerSecond: 6"
_MANY_LONG = {
    _SHORT: "outputTokens: 800, peakRequestsPerSecond: 60",
    "replicas: 2": "replicas: 400",
    "{max: 8}": "{max: 400}",
}
_FEWER_LONG = {**_MANY_LONG, _SHORT: "outputTokens: 800, peakRequestsPerSecond: 10"}


def requests_at(seconds: Iterable[float], output_tokens: int) -> list[RecordedRequest]:
    return [RecordedRequest(at, 100, output_tokens, (number,)) for number, at in enumerate(seconds)]


@pytest.fixture
def csv(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: str) -> Path:
        path = tmp_path / "trace.csv"
        path.write_text("\n".join(["timestamp,input,output", *rows]), encoding="utf-8")
        return path

    return write


def test_short_answers_are_replayed_for_a_minute_with_three_series(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    demand = demand_of(blueprint_of(), 0, None)
    assert demand.series == (Series(0, 360), Series(1, 360), Series(2, 360))
    assert demand.seconds == 60


def test_long_answers_are_replayed_for_as_many_answers_as_fill_the_workers(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    demand = demand_of(blueprint_of(_FEWER_LONG), 0, None)
    assert [each.requests for each in demand.series] == [600, 1200, 2400, 2937]
    assert len({each.seed for each in demand.series}) == 4
    assert demand.seconds == pytest.approx(ANSWERS * (1.0 + 799 * 0.060), rel=0.001)


def test_there_is_a_most_that_is_replayed_and_what_it_leaves_out_is_said(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    hopeless = {**_MANY_LONG, "timeToFirstTokenP90Ms: 1000": "timeToFirstTokenP90Ms: 1"}
    found = tune(blueprint_of(hopeless), 0, progress, engines_looked_at=["vllm"], stores=stores)
    assert found.demand.series[-1].requests == 10_000
    said = "replayed for 167 s, and one may take up to 48 s: latencies would grow further"
    assert any(said in note for note in found.notes)


def test_what_lasts_long_enough_needs_no_word(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    hopeless = {"timeToFirstTokenP90Ms: 1000": "timeToFirstTokenP90Ms: 1"}
    found = tune(blueprint_of(hopeless), 0, progress, engines_looked_at=["vllm"], stores=stores)
    assert not any("latencies grow on" in note for note in found.notes)


def test_of_a_trace_more_is_replayed_where_answers_are_long(blueprint_of: Callable[..., Blueprint]) -> None:
    model = blueprint_of().spec.models[0]
    seconds = [number / 50 for number in range(9000)]
    assert len(long_enough(requests_at(seconds, 10), model)) == 2000, "40 seconds, for answers of 1.6"
    assert len(long_enough(requests_at(seconds, 200), model)) == 4000, "80 seconds, for answers of 13"
    assert len(long_enough(requests_at(seconds, 2000), model)) == 9000, "all that there is"


def test_a_trace_s_series_grow_up_to_all_of_it() -> None:
    series = recorded_workload(requests_at(range(5000), 10), BLOCK_TOKENS).series
    assert [each.requests for each in series] == [2000, 4000, 5000]
    assert all(one.requests <= other.requests for one, other in pairwise(series))
    assert [each.requests for each in recorded_workload(requests_at(range(9), 10), 512).series] == [9, 9, 9]


def test_what_no_worker_accepts_is_left_out_and_said(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent, csv: Callable[..., Path]
) -> None:
    path = csv(*(f"{number / 2},{500_000 if number == 50 else 1500},50" for number in range(200)))
    found = tune(blueprint_of(), 0, progress, trace=path, engines_looked_at=["vllm"], stores=stores)
    assert found.best is not None
    assert isinstance(found.demand, RecordedWorkload)
    assert len(found.demand.requests) == 199
    said = "1 of the trace's 200 requests are longer than the 9,216 tokens that workers accept"
    assert any(said in note for note in found.notes)


def test_a_trace_of_which_nothing_is_accepted_is_an_error(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent, csv: Callable[..., Path]
) -> None:
    path = csv(*(f"{number},500000,50" for number in range(20)))
    with pytest.raises(UserError, match="0 of its 20 requests fit"):
        tune(blueprint_of(), 0, progress, trace=path, engines_looked_at=["vllm"], stores=stores)


def test_a_rate_beyond_all_bounds_is_an_error(csv: Callable[..., Path]) -> None:
    requests = read_trace(csv(*(f"{number / 1e9:.9f},10,5" for number in range(50)))).requests
    with pytest.raises(UserError, match="at most 1,000,000 per second are allowed"):
        recorded_workload(requests, BLOCK_TOKENS)
