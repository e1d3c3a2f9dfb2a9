"""Pools that models share by the hour: sums are those of the pool, not of its models' largest numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.report.picture.picture import picture
from inference_blueprints.report.plan.plan_tables import plan_tables
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.sections.shared_pools import SHARED_POOLS
from inference_blueprints.report.plan.short_plan import warnings_of
from inference_blueprints.report.plan.summary import as_dict, summarise
from inference_blueprints.serving.nodes.node_share import pool_quota
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_blueprints.serving.scaling.worker_load import request_seconds
from inference_blueprints.serving.traffic import (
    deployment_traffic,
    further_routes,
    lent_addresses,
    own_deployments,
    serving_deployments,
    way_address,
)
from inference_blueprints.serving.way_capacity import way_capacities
from inference_blueprints.spec.sections.pools.shared import shares
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import BlueprintError
from inference_contracts.shift_names import SharedPool, ShiftConfiguration
from inference_decisions.capacity_shift.shift_answer import ShiftDecision
from inference_decisions.capacity_shift.shift_view import ShiftState
from tests.templates.shared_platform import ACCELERATORS, FIRST, LENT, NODES, POOL, SECOND, document

Change = Callable[[dict[str, Any]], object]


def blueprint_of(change: Change = lambda _: None, action: str = "shift") -> Blueprint:
    found = document(action)
    change(found["spec"])
    return parse_blueprint(yaml.safe_dump(found), "shared.yaml").blueprint


def workers_of(spec: dict[str, Any], model: int) -> dict[str, Any]:
    found: dict[str, Any] = spec["models"][model]["deployments"][0]["aggregated"]
    return found


def shared_numbers(change: Change = lambda _: None) -> list[int]:
    return [*shares(blueprint_of(change).spec).values()]


def test_by_priority_in_whole_workers_and_batch_last() -> None:
    """Red if one that comes later keeps another below what it may have, or if half a worker is counted."""
    assert shared_numbers() == [12, 1, 0]
    # The other way round, the second takes two workers of four, and the first what is left.
    assert shared_numbers(lambda spec: spec["models"][1].update(priority=100)) == [12, 1, 0]
    assert shared_numbers(lambda spec: spec["models"][0].update(priority=50)) == [2, 8, 0]
    # What no real time may ask for goes to batch, whatever its priority.
    assert shared_numbers(lambda spec: workers_of(spec, 0)["replicas"].update(max=4)) == [4, 2, 4]
    assert shared_numbers(lambda spec: workers_of(spec, 2)["replicas"].update(min=3)) == [9, 1, 3]


def test_a_shared_pool_needs_and_costs_its_own_nodes() -> None:
    """Red if 36 accelerators are added up where there are 16."""
    blueprint = blueprint_of()
    plan = build_plan(blueprint)
    summary = summarise(blueprint, plan)
    (pool,) = summary[POOLS]
    assert (pool.nodes_used, pool.nodes_max, pool.accelerators_used) == (NODES, NODES, ACCELERATORS)
    assert pool.usd_per_hour_used == pool.usd_per_hour_max
    left = pool_quota(blueprint.spec.pools[0], plan).accelerators
    assert left is not None
    assert left.count == 0
    tables = {each.title: each for each in plan_tables(summary)}
    (metrics,) = [row for row in tables["Cost of a month"].rows if row[0] == "metrics in CloudWatch"]
    assert f"of each of {ACCELERATORS} GPUs" in metrics[1]
    drawn = picture(blueprint, plan)
    assert f"on {ACCELERATORS} accelerators" in drawn
    assert "shared by priority" in drawn
    assert "0 to 16 workers of 1 GPU" in drawn
    assert "priority 80" in drawn
    assert "no router, 0 to 16 servers" in drawn
    # The plan said 600 s, though each role of the pool looks as far ahead as its hand-over takes.
    assert "may reach within 159 s" in tables["Capacity shift"].notes[0]


def test_the_plan_says_who_comes_first_and_how_long_a_hand_over_takes() -> None:
    blueprint = blueprint_of()
    summary = summarise(blueprint, build_plan(blueprint))
    (pool,) = summary[SHARED_POOLS]
    assert (pool.accelerators, pool.accelerators_least, pool.accelerators_most) == (16, 6, 36)
    assert [each.workers for each in pool.roles] == ["live-main", "shop-main", "nightly-main"]
    assert [each.workers_by_priority for each in pool.roles] == [12, 1, 0]
    assert [each.batch_only for each in pool.roles] == [False, False, True]
    (table,) = (each for each in plan_tables(summary) if each.title == "Shared pools")
    assert table.rows[2][1] == "nightly-main (batch)"
    assert "may ask for 36" in table.notes[0]
    assert "all 16 workers" in table.notes[0]
    (shown,) = as_dict(summary)["sharedPools"]
    assert shown["roles"][0]["handoverSeconds"] == pool.roles[0].handover_seconds


def test_the_busiest_hour_of_stated_rates_fits_the_pool_or_is_warned_of() -> None:
    """Red if peaks at different hours are added up, or if those of one hour are not."""

    def busy(*hours: int) -> Change:
        def change(spec: dict[str, Any]) -> None:
            workers_of(spec, 1).update(tensorParallelSize=1, replicas={"min": 1, "max": 12})
            for model, hour in zip(spec["models"][:2], hours, strict=True):
                model["workload"]["peakRequestsPerSecond"] = 500
                model["workload"]["day"] = {"hours": [1 if each == hour else 0 for each in range(24)]}

        return change

    def summarised(change: Change) -> tuple[int | None, int | None, bool]:
        blueprint = blueprint_of(change)
        summary = summarise(blueprint, build_plan(blueprint))
        (pool,) = summary[SHARED_POOLS]
        warned = any("give way by priority" in str(each) for each in warnings_of(summary, "shared.yaml"))
        (table,) = (each for each in plan_tables(summary) if each.title == "Shared pools")
        hour, needed = pool.busiest_hour, pool.accelerators_in_busiest_hour
        said = f"need most from {hour}:00 UTC on: {needed} (simulated)" in " ".join(table.notes)
        assert said is (hour is not None)
        return hour, needed, warned

    assert summarised(lambda _: None) == (None, None, False)
    assert summarised(busy(9, 9)) == (9, 12 + 12, True)
    assert summarised(busy(9, 20)) == (20, 12 + 2, False)


def configuration_of(change: Change = lambda _: None) -> ShiftConfiguration:
    blueprint = blueprint_of(change)
    found = shift_configuration_of(blueprint, build_plan(blueprint))
    assert found is not None
    return found


def test_the_shift_knows_the_pool_and_sets_numbers_of_batch_itself() -> None:
    found = configuration_of()
    assert found.shared_pools == (SharedPool(pool=POOL, accelerators=16, accelerators_per_node=8),)
    by_name = {each.name: each for each in found.workers}
    assert [*by_name] == [FIRST, SECOND, LENT]
    assert [each.priority for each in found.workers] == [100, 80, 10]
    lent = by_name[LENT]
    assert (lent.least, lent.most, lent.batch_only, lent.scale) == (0, 16, True, "apps/v1/deployments")
    assert lent.tokens_per_accelerator_hour > 0
    assert ShiftConfiguration.from_json(found.as_json()) == found


def test_stated_requests_are_what_the_shift_and_scaling_count_with() -> None:
    """Red if the shift lends by the KV cache or by the profile, though somebody measured a worker."""

    def stated(number: int) -> Change:
        return lambda spec: workers_of(spec, 0).update(requestsAtOnce=number)

    blueprint = blueprint_of(stated(7))
    by_name = {each.name: each.capacity for each in configuration_of(stated(7)).workers}
    assert (by_name[FIRST], by_name[SECOND]) == (7, 60)
    (process,) = build_plan(blueprint).models[0].deployments[0].workers
    assert process.scaling is not None
    guard = process.scaling.triggers[-1]
    assert guard.target == pytest.approx(7 / 1.1, abs=0.01)
    assert "7 requests, as the blueprint states" in guard.why

    def seconds(number: int) -> float | None:
        return request_seconds(resolve(blueprint_of(stated(number)), 0, 0)[-1])

    # Fewer requests at once take less time each; beyond the end of the latency profile, nothing is known.
    few, many = seconds(1), seconds(7)
    assert few is not None
    assert many is not None
    assert few < many
    assert seconds(100_000) is None


def test_requests_of_elastic_prefill_workers_are_those_of_the_workers_that_decode() -> None:
    """Red if a number of prefill workers, which the shift does not count with, is enough."""

    def apart(**decode: Any) -> Change:
        def change(spec: dict[str, Any]) -> None:
            prefill = {**workers_of(spec, 1), "requestsAtOnce": 60}
            fixed = {"pool": POOL, "tensorParallelSize": 4, "replicas": 1, **decode}
            spec["pools"][0]["efa"] = True
            spec["models"][1]["stack"] = {"dynamo": {}}
            spec["models"][1]["deployments"][0] = {
                "name": "main",
                "disaggregated": {"prefill": prefill, "decode": fixed},
            }

        return change

    with pytest.raises(BlueprintError, match=r"disaggregated\.decode: .* add 'requestsAtOnce'"):
        blueprint_of(apart())
    assert blueprint_of(apart(requestsAtOnce=60))


def test_fixed_workers_are_no_part_of_what_is_shared() -> None:
    def fix(spec: dict[str, Any]) -> None:
        workers = workers_of(spec, 1)
        del workers["scaledBy"]
        workers["replicas"] = 2

    found = configuration_of(fix)
    assert found.shared_pools[0].accelerators == 8
    assert [each.name for each in found.workers] == [FIRST, LENT]


def test_a_hand_over_is_the_drain_of_another_role_and_a_start_on_a_running_node() -> None:
    """Red if it has the start of a node, or of an engine of which nobody knows how long it takes."""
    blueprint = blueprint_of(
        lambda spec: workers_of(spec, 0).update(measuredStart={"launchSeconds": 7000, "engineSeconds": 50})
    )
    plan = build_plan(blueprint)
    found = shift_configuration_of(blueprint, plan)
    assert found is not None
    drain = max(
        process.termination_grace_seconds
        for model in plan.models[1:]
        for deployment in model.deployments
        for process in deployment.workers
    )
    first = found.workers[0].handover_seconds
    assert first is not None
    assert drain + 50 < first < drain + 50 + 60, "weights of 16 GB"

    def other_engine(spec: dict[str, Any]) -> None:
        spec["models"][0].update(engine={"sglang": {}}, stack={"dynamo": {}})
        workers_of(spec, 0).update(requestsAtOnce=60)

    assert (configuration_of(other_engine).workers[0].handover_seconds or 0) >= 600

    stated = configuration_of(lambda spec: spec["capacityShift"].update(reclaimSeconds=900))
    assert {each.handover_seconds for each in stated.workers} == {900}
    assert {each.new_node_seconds for each in (*stated.workers, *found.workers)} == {None}, "all nodes run"


def test_where_nodes_come_and_go_a_role_knows_the_start_of_one() -> None:
    """Red if it has no launch of a node, or another role's drain."""

    def grows(spec: dict[str, Any]) -> None:
        spec["pools"][0]["nodes"] = {"min": 1, "max": NODES}
        spec["pools"][0]["purchase"] = {"onDemand": {}}
        workers_of(spec, 0).update(measuredStart={"launchSeconds": 7000, "engineSeconds": 50})

    found = configuration_of(grows)
    first = found.workers[0]
    assert first.new_node_seconds is not None
    assert first.handover_seconds is not None
    assert 7050 < first.new_node_seconds < 7500
    assert first.handover_seconds < 7000
    assert found.shared_pools[0].always == ACCELERATORS // NODES
    assert ShiftConfiguration.from_json(found.as_json()) == found


@pytest.mark.parametrize("shifted", [True, False])
def test_values_of_charts(*, shifted: bool) -> None:
    """Red if a ceiling begins above the share, or if workers of batch begin before anybody lent them."""
    plan = build_plan(blueprint_of())
    first, _, lent = (
        deployment_values(model.deployments[0], shifted=shifted)["processes"][0] for model in plan.models
    )
    assert (first["scaling"]["most"], first["scaling"]["ceiling"]) == (12, 12)
    assert first["priorityClass"] == "inference-real-time"
    assert lent["priorityClass"] == "inference-batch"
    assert lent["replicas"] == 0
    assert lent.get("lent", False) is shifted
    assert "scaling" not in lent


def test_other_pools_have_none_of_it() -> None:
    """Red if workers of a deployed platform start again because of a class, or get a ceiling."""

    def alone(spec: dict[str, Any]) -> None:
        spec["models"] = spec["models"][:1]
        spec["batch"]["queues"][0]["model"] = "live"
        del spec["models"][0]["priority"], spec["pools"][0]["shared"]

    blueprint = blueprint_of(alone)
    plan = build_plan(blueprint)
    (process,) = plan.models[0].deployments[0].processes
    assert process == dataclasses.replace(process, priority_class=None, share=None, lent_most=None)
    values = deployment_values(plan.models[0].deployments[0], shifted=True)["processes"][0]
    assert not {"priorityClass", "lent"} & values.keys()
    assert "ceiling" not in values["scaling"]
    found = shift_configuration_of(blueprint, plan)
    assert found is not None
    assert found.shared_pools == ()
    assert found.workers[0].handover_seconds is None
    assert summarise(blueprint, plan)[SHARED_POOLS] == ()


def test_a_shift_that_observes_is_said() -> None:
    loaded = parse_blueprint(yaml.safe_dump(document("observe")), "shared.yaml")
    assert any("only observes" in str(each) for each in loaded.warnings)


# One queue of a model with workers that stay, and workers that come at night.


def with_steady(spec: dict[str, Any]) -> None:
    """Give the model of batch two workers on a pool of its own, which stay."""
    spec["pools"].append({"name": "steady", "instanceTypes": ["g6e.2xlarge"], "nodes": {"max": 2}})
    lent = spec["models"][2]["deployments"][0]
    steady = {"pool": "steady", "tensorParallelSize": 1, "replicas": 2}
    spec["models"][2]["deployments"] = [{"name": "steady", "aggregated": steady}, {**lent, "name": "night"}]


def test_workers_that_may_be_gone_have_an_address_of_their_own() -> None:
    """Red if a request to the model, or to its other workers, may go to a deployment without any."""
    spec = blueprint_of(with_steady).spec
    assert spec.batch is not None
    model, [queue] = spec.models[2], spec.batch.queues
    assert own_deployments(spec, model) == ("steady",)
    assert way_address(spec, queue) == "nightly"
    assert lent_addresses(spec, queue) == {"nightly--batch-night": "night"}
    assert further_routes(spec, model) == {"nightly--batch-night": ("night",)}
    # Both serve the queue, in proportion to their accelerators: 2 and 16.
    assert serving_deployments(spec, queue) == ("steady", "night")
    rates = [deployment_traffic(spec, model, each).requests_per_second for each in model.deployments]
    assert rates[1] == pytest.approx(8 * rates[0])
    assert not model.may_have_no_worker


def test_requests_in_real_time_stay_away_from_workers_that_may_be_gone() -> None:
    """Red if the model's own address leads to them, or the queue has only what real time has."""

    def also_live(spec: dict[str, Any]) -> None:
        with_steady(spec)
        spec["models"][2]["workload"] = {
            "inputTokens": 1000,
            "outputTokens": 100,
            "peakRequestsPerSecond": 1,
        }

    spec = blueprint_of(also_live).spec
    assert spec.batch is not None
    steady, night = (
        {way.kind for way in deployment_traffic(spec, spec.models[2], each).ways}
        for each in spec.models[2].deployments
    )
    assert (steady, night) == ({"realTime", "queue"}, {"queue"})

    def without_lengths(spec: dict[str, Any]) -> None:
        also_live(spec)
        del spec["batch"]["queues"][0]["workload"]

    with pytest.raises(BlueprintError, match="are a part of the model's 'workload', which other deployments"):
        blueprint_of(without_lengths)


def test_two_queues_name_deployments_of_both_kinds() -> None:
    """Red if a queue's list of deployments puts both behind one address."""

    def named(spec: dict[str, Any]) -> None:
        with_steady(spec)
        live = {"name": "live", "aggregated": {"pool": "steady", "tensorParallelSize": 1, "replicas": 1}}
        spec["pools"][1]["nodes"]["max"] = 3
        spec["models"][2]["deployments"].insert(0, live)
        spec["models"][2]["workload"] = {
            "inputTokens": 1000,
            "outputTokens": 100,
            "peakRequestsPerSecond": 1,
        }
        [queue] = spec["batch"]["queues"]
        queue["deployments"] = ["night", "steady"]
        spec["batch"]["queues"].append({**queue, "name": "second"})

    spec = blueprint_of(named).spec
    assert spec.batch is not None
    model = spec.models[2]
    assert own_deployments(spec, model) == ("live",)
    for queue in spec.batch.queues:
        assert way_address(spec, queue) == "nightly--batch"
        assert [*lent_addresses(spec, queue)] == ["nightly--batch-night"]
    assert further_routes(spec, model) == {"nightly--batch": ("steady",), "nightly--batch-night": ("night",)}


def test_an_address_of_workers_that_may_be_gone_is_free() -> None:
    """Red if two rules of the load balancer have one host name."""

    def taken(spec: dict[str, Any]) -> None:
        with_steady(spec)
        spec["models"][1]["name"] = "nightly--batch-night"

    with pytest.raises(BlueprintError, match="has the address 'nightly--batch-night', like model"):
        blueprint_of(taken)


def test_workers_that_stay_keep_their_places_of_batch() -> None:
    """Red if the shift leaves batch no place while workers that stay could work, or gives it too many."""
    configuration = configuration_of(with_steady)
    [lent] = [each for each in configuration.workers if each.batch_only]
    fixed, rest = configuration.fixed_places["nightly"], configuration.batch_places["nightly"]
    assert configuration.batch_share(lent) == rest
    assert fixed + rest == configuration_of().batch_places["nightly"]
    assert 0 < fixed < rest
    nothing = ShiftDecision(
        decided_at=0.0, carried_out=True, deployments=(), pools=(), state=ShiftState(decided_at=0.0)
    )
    assert nothing.ceilings(configuration)["nightly"] == fixed
    assert ShiftConfiguration.from_json(configuration.as_json()) == configuration
    assert "fixed_places" not in configuration_of().as_json(), "the function of an old file would change"


def test_batch_has_by_the_hour_what_the_stated_rates_leave() -> None:
    """Red if a deadline counts lent workers at noon, when real time has them."""

    def left(*, day: bool) -> tuple[float, ...]:
        def change(spec: dict[str, Any]) -> None:
            with_steady(spec)
            workers_of(spec, 1).update(tensorParallelSize=1, replicas=1)
            del workers_of(spec, 1)["scaledBy"]
            lengths = {"inputTokens": {"mean": 8000, "max": 10_000}, "outputTokens": 100}
            spec["batch"]["queues"][0]["workload"] = lengths
            workload = spec["models"][0]["workload"]
            workload["peakRequestsPerSecond"] = 500
            if day:
                workload["day"] = {"hours": [1.0] * 12 + [0.0] * 12}

        blueprint = blueprint_of(change)
        assert blueprint.spec.batch is not None
        roles = [resolve(blueprint, 2, index)[0] for index in range(2)]
        found = way_capacities(blueprint.spec, blueprint.spec.batch.queues, roles)["nightly"].left_by_hour
        assert found is not None
        return found

    always, steady = left(day=False), left(day=True)
    assert len(set(always)) == 1
    # At night real time keeps its two workers and one fixed one: 13 of 16 accelerators are left.
    lent = (always[0] - steady[12]) / (3 / 16)
    assert steady[:12] == pytest.approx([always[0] - lent * 13 / 16] * 12)
    assert lent > always[0] / 2
