"""The search finds what replaying everything finds, and replays less."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from inference_blueprints.measure.simulation.highest_rate import holds
from inference_blueprints.measure.tuning.candidates import (
    Cost,
    Costing,
    RoleShape,
    TuningCandidate,
    WorkerShape,
    counts,
)
from inference_blueprints.measure.tuning.evaluation import Evaluation, Evaluator
from inference_blueprints.measure.tuning.search import Bounded
from inference_blueprints.measure.tuning.tune import Stores, bounded_shapes, demand_of, possible_shapes, tune
from inference_blueprints.report.pricing.rates import prices_for
from inference_blueprints.spec.types import EACH_TOKEN, WHOLE_REQUEST, Blueprint
from tests.unit.measure.tuning.conftest import Silent

MAXIMUM = 4
WORKLOADS: dict[str, dict[str, str]] = {
    "as it is": {},
    "short prompts, many": {
        "inputTokens: 2000, outputTokens: 100, peakRequestsPerSecond: 6": (
            "inputTokens: 300, outputTokens: 200, sharedPrefixRatio: 0.5, peakRequestsPerSecond: 10"
        )
    },
    "tight": {"timePerOutputTokenP90Ms: 60": "timePerOutputTokenP90Ms: 12"},
}


def evaluator_of(blueprint: Blueprint, stores: Stores, maximum: int = MAXIMUM) -> Evaluator:
    costing = Costing(blueprint, 0, prices_for("us-west-2"), maximum)
    return Evaluator(costing, demand_of(blueprint, 0, None), stores.profiles.find, stores.replays)


def everything(evaluator: Evaluator) -> TuningCandidate:
    """Return the cheapest configuration of the whole grid that keeps the objectives."""
    shapes = [each.shape for each in bounded_of(evaluator)]
    grid = [
        TuningCandidate(shape, replicas)
        for shape in shapes
        for replicas in product(counts(MAXIMUM), repeat=len(shape.roles))
    ]
    keeping = [each for each in grid if evaluator.costing.has_room(each) and evaluator.keeps(each)]
    return min(keeping, key=evaluator.costing.cost)


def bounded_of(evaluator: Evaluator) -> list[Bounded]:
    possible = possible_shapes(evaluator.costing, ["vllm"])
    covered = [shape for shape in possible if all(role.tensor_parallel_size == 1 for role in shape.roles)]
    return bounded_shapes(evaluator, covered)


@pytest.mark.parametrize(
    "workload",
    [pytest.param(name, marks=[] if name == "tight" else [pytest.mark.thorough]) for name in WORKLOADS],
)
def test_it_is_as_cheap_as_the_best_of_the_whole_grid(
    workload: str, blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    blueprint = blueprint_of(WORKLOADS[workload])
    reference = evaluator_of(blueprint, stores)
    best = everything(reference)
    found = tune(blueprint, 0, progress, max_accelerators=MAXIMUM, engines_looked_at=["vllm"], stores=stores)
    assert found.best is not None
    assert found.best.cost == reference.costing.cost(best)
    assert found.best.keeps
    assert found.replays + found.from_cache < (reference.replays + reference.from_cache) / 2


def test_a_search_goes_on_from_what_was_replayed(
    blueprint_of: Callable[..., Blueprint], own_stores: Stores, progress: Silent
) -> None:
    blueprint = blueprint_of()
    first = tune(
        blueprint, 0, progress, max_accelerators=MAXIMUM, engines_looked_at=["vllm"], stores=own_stores
    )
    again = tune(
        blueprint, 0, progress, max_accelerators=MAXIMUM, engines_looked_at=["vllm"], stores=own_stores
    )
    assert first.replays > 0
    assert again.replays == 0
    assert again.from_cache == first.replays
    assert again.evaluations == first.evaluations


def test_another_objective_asks_the_same_replays_again_and_judges_anew(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    loose = tune(blueprint_of(), 0, progress, engines_looked_at=["vllm"], stores=stores)
    tight = tune(
        blueprint_of({"timePerOutputTokenP90Ms: 60": "timePerOutputTokenP90Ms: 30"}),
        0,
        progress,
        engines_looked_at=["vllm"],
        stores=stores,
    )
    assert loose.best is not None
    assert tight.best is not None
    assert loose.best.cost < tight.best.cost
    assert tight.best.percentile_ms(EACH_TOKEN, 90) <= 30


def test_a_whole_request_and_high_percentiles_are_met_and_what_misses_says_which(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    """The cheapest configuration was chosen by 90th percentiles of tokens, whatever else was stated."""
    loose = tune(blueprint_of(), 0, progress, engines_looked_at=["vllm"], stores=stores).best
    assert loose is not None
    limit = loose.percentile_ms(WHOLE_REQUEST, 99) * 0.9
    wanted = f"timeToFirstTokenMs: {{p50: 900, p95: 1000}}, requestMs: {{p99: {limit}}}"
    changes = {"timeToFirstTokenP90Ms: 1000, timePerOutputTokenP90Ms: 60": wanted}
    found = tune(blueprint_of(changes), 0, progress, engines_looked_at=["vllm"], stores=stores)
    assert found.best is not None
    assert found.best.percentile_ms(WHOLE_REQUEST, 99) <= limit
    assert loose.cost <= found.best.cost
    [again] = [each for each in found.evaluations if each.candidate == loose.candidate]
    assert [each.objective.name for each in again.judged if not each.met] == ["whole request p99"]


def test_every_configuration_that_is_reported_was_replayed_and_has_room(
    blueprint_of: Callable[..., Blueprint], own_stores: Stores, progress: Silent
) -> None:
    blueprint = blueprint_of()
    found = tune(
        blueprint, 0, progress, max_accelerators=MAXIMUM, engines_looked_at=["vllm"], stores=own_stores
    )
    series = len(found.demand.series)
    assert {each.candidate for each in found.evaluations} <= set(progress.replayed)
    for each in found.evaluations:
        assert each.candidate.accelerators <= MAXIMUM
        assert len(each.results) == series if each.keeps else len(each.results) <= series
        assert each.keeps == all(holds(found.objectives, result) for result in each.results)


def test_there_may_be_no_choice(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    impossible = blueprint_of({"timePerOutputTokenP90Ms: 60": "timePerOutputTokenP90Ms: 1"})
    found = tune(impossible, 0, progress, engines_looked_at=["vllm"], stores=stores)
    assert found.best is None
    assert found.replays == 0, "by arithmetic alone"


def test_equal_costs_are_ordered_by_a_rule_and_not_by_chance(
    blueprint_of: Callable[..., Blueprint], stores: Stores
) -> None:
    evaluator = evaluator_of(blueprint_of(), stores)
    cost = Cost(1.0, 2, 1.0)
    both, apart = (RoleShape("l40s", 1),), (RoleShape("l40s", 1), RoleShape("l40s", 1))
    ordered = [
        TuningCandidate(WorkerShape("vllm", both), (2,)),
        TuningCandidate(WorkerShape("sglang", both), (2,)),
        TuningCandidate(WorkerShape("vllm", apart), (1, 1)),
        TuningCandidate(WorkerShape("sglang", apart), (1, 1)),
    ]
    judged = [Evaluation(candidate, cost, (), ()) for candidate in reversed(ordered)]
    assert [each.candidate for each in sorted(judged, key=evaluator._rank)] == ordered
