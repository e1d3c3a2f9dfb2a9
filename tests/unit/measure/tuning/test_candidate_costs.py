"""Costs are the plan's, and room is what `validate` allows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from inference_blueprints.measure.tuning.candidates import (
    Costing,
    RoleShape,
    TuningCandidate,
    WorkerShape,
    counts,
    engines,
    shapes,
)
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.report.pricing.rates import CustomRates, prices_for
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint

L40S, H200 = RoleShape("l40s", 1), RoleShape("h200", 1)


def one(count: int, role: RoleShape = L40S) -> TuningCandidate:
    return TuningCandidate(WorkerShape("vllm", (role,)), (count,))


def costing_of(blueprint: Blueprint, maximum: int | None = None, rates: CustomRates | None = None) -> Costing:
    return Costing(blueprint, 0, prices_for("us-west-2", rates), maximum)


def test_a_configuration_costs_what_the_plan_says(blueprint_of: Callable[..., Blueprint]) -> None:
    blueprint = blueprint_of()
    both = TuningCandidate(WorkerShape("vllm", (L40S, H200)), (3, 2))
    tuned = both.within(blueprint, 0)
    pools = summarise(tuned, build_plan(tuned))[POOLS]
    cost = costing_of(blueprint).cost(both)
    assert all(pool.usd_per_hour_used for pool in pools)
    assert cost.usd_per_hour == pytest.approx(sum(pool.usd_per_hour_used or 0 for pool in pools))
    assert cost.accelerators == 5


def test_of_equal_prices_fewer_accelerators_are_less(blueprint_of: Callable[..., Blueprint]) -> None:
    costing = costing_of(blueprint_of())
    two, three = costing.cost(one(2, H200)), costing.cost(one(3, H200))
    assert two.usd_per_hour == three.usd_per_hour, "both are one node"
    assert two < three


def test_an_unknown_price_ranks_by_accelerators(blueprint_of: Callable[..., Blueprint]) -> None:
    spot = {"nodes: {max: 8}}": "nodes: {max: 8}, purchase: {spot: {}}}"}
    costing = costing_of(blueprint_of(spot))
    assert costing.unpriced_pools == ("l40s",)
    assert costing.cost(one(3)).usd_per_hour is None
    assert costing.cost(one(3)) < costing.cost(one(4, H200))
    rates = CustomRates("us-west-2", "2026-11", "a test", {("g6e.2xlarge", "spot"): 0.5})
    assert costing_of(blueprint_of(spot), rates=rates).cost(one(3)).usd_per_hour == 1.5


def test_room_is_that_of_pools_and_of_the_devices_that_are_allowed(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    costing = costing_of(blueprint_of())
    assert costing.has_room(one(8))
    assert not costing.has_room(one(9)), "the pool has eight nodes"
    assert not costing_of(blueprint_of(), maximum=4).has_room(one(5))
    assert not costing.has_room(one(1, RoleShape("l40s", 2))), "a node has one device"


def test_too_few_workers_are_no_matter_of_room(blueprint_of: Callable[..., Blueprint]) -> None:
    busy = blueprint_of(
        {"peakRequestsPerSecond: 6": "peakRequestsPerSecond: 60", "replicas: 2": "replicas: 8"}
    )
    costing = costing_of(busy)
    assert costing.has_room(one(1))
    assert costing.has_too_few(one(1)), "its cache is too small for the peak"
    assert not costing.has_too_few(one(8))


def test_a_platform_with_a_capacity_shift_has_room(blueprint_of: Callable[..., Blueprint]) -> None:
    """Each fixed number was refused, because the shift needs a range: "no latency profile" was the answer."""
    elastic = "replicas: {min: 1, max: 4}, scaledBy: {load: {}}"
    rates = "{usdPerMillionInputTokens: 1, usdPerMillionOutputTokens: 1}"
    team = '{name: ads, principals: ["arn:aws:iam::111122223333:role/Ads"], monthlyBudgetUsd: 100}'
    queue = f"{{name: nightly, model: qwen3-8b, rates: {rates}}}"
    batch = f"  teams: [{team}]\n  batch: {{queues: [{queue}]}}\n"
    shift = f"  observability: {{}}\n  capacityShift: {{}}\n{batch}  models:\n"
    costing = costing_of(blueprint_of({"replicas: 2": elastic, "  models:\n": shift}))
    assert costing.blueprint.spec.capacity_shift is not None
    assert costing.has_room(one(4))
    assert costing.cost(one(4)).usd_per_hour == costing_of(blueprint_of()).cost(one(4)).usd_per_hour


def test_shapes_are_of_sizes_that_leave_no_device_over(blueprint_of: Callable[..., Blueprint]) -> None:
    found = list(shapes(blueprint_of(), ["vllm"]))
    roles = {role for shape in found for role in shape.roles}
    assert roles == {L40S, *(RoleShape("h200", size) for size in (1, 2, 4, 8))}
    assert len(found) == len(roles) + len(roles) ** 2


def test_an_engine_with_arguments_is_the_only_one_looked_at(blueprint_of: Callable[..., Blueprint]) -> None:
    with_arguments = blueprint_of({"engine: {vllm: {}}": "engine: {vllm: {args: {seed: 7}}}"})
    assert engines(with_arguments, 0) == ("vllm",)
    assert "vllm" in engines(blueprint_of(), 0)
    assert len(engines(blueprint_of(), 0)) > 1


def test_many_workers_are_tried_in_steps_of_a_few_percent() -> None:
    found = counts(1000)
    assert found[:33] == tuple(range(1, 34))
    assert all(later / one - 1 <= 1 / 32 for one, later in pairwise(found[32:]))
    assert len(found) < 200
