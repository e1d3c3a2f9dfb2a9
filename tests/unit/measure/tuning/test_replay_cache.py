"""What was replayed is kept by all that it depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inference_blueprints.measure.simulation.offline_replay import Latencies, SimulatedReplay
from inference_blueprints.measure.tuning.candidates import Costing, RoleShape, TuningCandidate, WorkerShape
from inference_blueprints.measure.tuning.evaluation import Evaluator, ReplayCache, demand_digest, replay_key
from inference_blueprints.measure.tuning.replayed_workload import Series
from inference_blueprints.measure.tuning.tune import Stores, demand_of
from inference_blueprints.report.pricing.rates import prices_for
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError

FIRST = Series(seed=0, requests=10)

RESULT = SimulatedReplay(
    Latencies(1, 2, 3, 4, 5), Latencies(4, 5, 6, 7, 8), Latencies(7, 8, 9, 10, 11), 10.0, 0.5
)


def test_a_replay_is_read_as_it_was_kept(tmp_path: Path) -> None:
    cache = ReplayCache(tmp_path)
    assert cache.get("abc") is None
    cache.put("abc", RESULT)
    assert cache.get("abc") == RESULT
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"time_to_first_token": 1}'])
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    cache = ReplayCache(tmp_path)
    cache.put("abc", RESULT)
    (tmp_path / "ab" / "abc.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"abc\.json: is not a cached replay: .*; remove it"):
        cache.get("abc")


def test_whatever_a_replay_depends_on_is_in_its_key(
    blueprint_of: Callable[..., Blueprint], stores: Stores
) -> None:
    blueprint = blueprint_of()
    costing = Costing(blueprint, 0, prices_for("us-west-2"))
    demand = demand_of(blueprint, 0, None)
    evaluator = Evaluator(costing, demand, stores.profiles.find, stores.replays)
    [one] = evaluator.workers(TuningCandidate(WorkerShape("vllm", (RoleShape("l40s", 1),)), (2,)))
    [other] = evaluator.workers(TuningCandidate(WorkerShape("vllm", (RoleShape("h200", 1),)), (2,)))
    digest = demand_digest(demand)
    busier = demand_of(blueprint_of({"peakRequestsPerSecond: 6": "peakRequestsPerSecond: 7"}), 0, None)
    keys = [
        replay_key([one], digest, "kv_router", FIRST),
        replay_key([one], digest, "kv_router", replace(FIRST, seed=1)),
        replay_key([one], digest, "kv_router", replace(FIRST, requests=11)),
        replay_key([one], digest, "round_robin", FIRST),
        replay_key([one], demand_digest(busier), "kv_router", FIRST),
        replay_key([replace(one, replicas=3)], digest, "kv_router", FIRST),
        replay_key(
            [replace(one, settings=replace(one.settings, max_num_seqs=1))], digest, "kv_router", FIRST
        ),
        replay_key([replace(one, profile=other.profile)], digest, "kv_router", FIRST),
    ]
    assert len(set(keys)) == len(keys)
    assert replay_key([one], digest, "kv_router", FIRST) == keys[0]
