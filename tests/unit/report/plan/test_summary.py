"""The figures of `blueprints plan`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.images import IMAGES
from inference_blueprints.report.plan.sections.memory import MEMORY
from inference_blueprints.report.plan.sections.pools import POOLS, PRICES, TOTALS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.plan.sections.quotas import QUOTAS
from inference_blueprints.report.plan.summary import as_dict, summarise
from inference_blueprints.serving.plan import build_plan
from tests.unit.plan_samples import ChangedScene


def _price(instance_type: str) -> float:
    price = catalog.instance_type(instance_type).usd_per_hour
    assert price is not None
    return price


_PRICE = _price("g6e.2xlarge")


def _summarise(scene: Scene) -> PlanSummary:
    return summarise(scene.blueprint, build_plan(scene.blueprint))


def test_quickstart(changed: ChangedScene) -> None:
    summary = _summarise(changed(lambda spec: spec))
    (pool,) = summary[POOLS]
    assert (pool.name, pool.accelerator, pool.purchase) == ("l40s", "l40s", "onDemand")
    assert (pool.nodes_used, pool.nodes_max, pool.accelerators_used, pool.accelerators_max) == (2, 2, 2, 2)
    assert pool.usd_per_hour_used == pytest.approx(2 * _PRICE)
    assert summary[TOTALS].usd_per_hour_max == pytest.approx(2 * _PRICE)
    assert [(each.name, each.pool, each.accelerators) for each in summary[PROCESSES]] == [
        ("frontend", None, 0),
        ("worker", "l40s", 1),
    ]


def test_used_nodes_are_reckoned_with_the_cheapest_type_and_the_most_with_the_dearest(
    changed: ChangedScene,
) -> None:
    def two_types(spec: dict[str, Any]) -> None:
        spec["pools"][0]["instanceTypes"] = ["g6e.12xlarge", "g6e.2xlarge"]
        spec["pools"][0]["nodes"]["max"] = 3

    (pool,) = _summarise(changed(two_types))[POOLS]
    assert pool.reckoned_instance_type == "g6e.2xlarge"
    assert pool.usd_per_hour_used == pytest.approx(2 * _PRICE)
    assert pool.accelerators_max == 12
    assert pool.usd_per_hour_max == pytest.approx(3 * _price("g6e.12xlarge"))


def test_an_unknown_price_is_none_and_the_totals_say_so(
    changed: ChangedScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = changed(lambda spec: spec["pools"].append({**spec["pools"][0], "name": "spare"}))
    table = dataclasses.replace(catalog.prices(), usd_per_hour={})
    monkeypatch.setattr(catalog, "prices", lambda _region: table)
    summary = summarise(scene.blueprint, scene.plan)
    assert [pool.usd_per_hour_used for pool in summary[POOLS]] == [None, 0.0]
    assert [pool.usd_per_hour_max for pool in summary[POOLS]] == [None, None]
    assert summary[TOTALS].usd_per_hour_used == 0.0
    assert summary[TOTALS].without_used == ("l40s",)
    assert summary[TOTALS].without_max == ("l40s", "spare")


def test_kept_nodes_are_paid_for_without_workers(changed: ChangedScene) -> None:
    def keep_four(spec: dict[str, Any]) -> None:
        spec["pools"][0]["nodes"] = {"min": 4, "max": 6}
        spec["pools"].append({**spec["pools"][0], "name": "spare", "nodes": {"min": 1, "max": 2}})

    summary = _summarise(changed(keep_four))
    assert [pool.nodes_used for pool in summary[POOLS]] == [4, 1]
    assert [pool.usd_per_hour_used for pool in summary[POOLS]] == pytest.approx([4 * _PRICE, _PRICE])
    # 5 nodes of 8 vCPUs, 8 at the most.
    need = next(need for need in summary[QUOTAS] if need.code == "L-DB2E81BA")
    assert (need.vcpu_used, need.vcpu_max) == (40, 64)


def test_prices_elsewhere_are_said_to_differ(changed: ChangedScene) -> None:
    elsewhere = _summarise(changed(lambda spec: spec))[PRICES]
    assert (elsewhere.region, elsewhere.blueprint_region) == ("us-east-1", "us-west-2")
    assert "deploys to us-west-2, where prices may differ" in elsewhere.note
    here = _summarise(changed(lambda spec: spec["environment"].update(region="us-east-1")))[PRICES]
    assert "differ" not in here.note
    assert here.date in here.note
    assert here.source in here.note


def test_what_a_new_network_costs_is_listed_only_when_there_is_one(changed: ChangedScene) -> None:
    existing = {
        "vpcId": "vpc-0a1b2c3d",
        "vpcCidr": "10.0.0.0/16",
        "privateSubnetIds": ["subnet-0a1b2c3d", "subnet-0a1b2c3e"],
    }
    new = _summarise(changed(lambda spec: spec))[PRICES].not_included
    old = _summarise(changed(lambda spec: spec.update(network={"existing": existing})))[PRICES].not_included
    assert set(new) - set(old) == {"NAT gateways and VPC endpoints"}


def test_memory_is_that_of_the_plan_and_adds_up(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec)
    (memory,) = _summarise(scene)[MEMORY]
    engine = scene.plan.models[0].deployments[0].processes[1].engine
    assert engine is not None
    assert memory.kv_cache_tokens == engine.kv_blocks * engine.block_size
    parts = memory.weights_bytes + memory.activation_bytes + memory.reserved_bytes + memory.kv_cache_bytes
    assert 0.8 * memory.accelerator_bytes < parts <= memory.accelerator_bytes


@pytest.mark.parametrize(
    ("workload", "shared_tokens", "own_tokens"),
    [
        ({"inputTokens": 3000, "outputTokens": 200}, 0, 3200),
        ({"inputTokens": 6000, "outputTokens": 2000}, 0, 8000),
        ({"inputTokens": 8000, "outputTokens": 4000, "sharedPrefixRatio": 0.5}, 4000, 8000),
    ],
)
def test_requests_at_once_are_bounded_by_memory_and_by_the_engine(
    changed: ChangedScene, workload: dict[str, Any], shared_tokens: int, own_tokens: int
) -> None:
    scene = changed(lambda spec: spec["models"][0]["workload"].update(workload))
    (memory,) = _summarise(scene)[MEMORY]
    engine = scene.plan.models[0].deployments[0].processes[1].engine
    assert engine is not None
    by_memory = (memory.kv_cache_tokens - shared_tokens) // own_tokens
    assert memory.concurrent_requests == min(engine.max_num_seqs, by_memory)


def test_json_has_camel_case_keys_and_plain_values(summary: PlanSummary) -> None:
    document = as_dict(summary)
    assert json.loads(json.dumps(document)) == document
    assert document["pools"][0]["usdPerHourUsed"] == summary[POOLS][0].usd_per_hour_used
    unpriced = [pool.name for pool in summary[POOLS] if pool.usd_per_hour_used is None]
    assert document["totals"]["withoutUsed"] == unpriced
    assert document["coldStarts"][0]["dominatedBy"].startswith("weights")
    assert document["prices"]["note"] == summary[PRICES].note
    # Models that make images have no KV cache.
    writes = not summary[IMAGES]
    assert (document["memory"][0]["kvCacheTokens"] > 0) is writes


def test_a_total_of_nothing_known_is_unknown_and_not_nothing() -> None:
    blueprint = load_blueprint("capacity-block-p5").blueprint
    totals = summarise(blueprint, build_plan(blueprint))[TOTALS]
    assert (totals.usd_per_hour_used, totals.usd_per_hour_max) == (None, None)
