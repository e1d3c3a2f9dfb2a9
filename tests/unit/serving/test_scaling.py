"""Elastic workers: targets follow from capacity and start time, and both roles keep their ratio."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import load_blueprint, parse_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.performance import role_capacity
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.scaling.worker_load import GROWTH_SECONDS, Headroom, worker_load
from inference_blueprints.serving.types import DeploymentPlan, Process, Scaling
from inference_blueprints.spec.types import Blueprint

ELASTIC: dict[str, Any] = yaml.safe_load((blueprints_directory() / "elastic-g6e.yaml").read_text("utf-8"))
DISAGGREGATED: dict[str, Any] = yaml.safe_load(
    (blueprints_directory() / "p5en-disaggregated.yaml").read_text("utf-8")
)


def parsed(document: dict[str, Any]) -> Blueprint:
    return parse_blueprint(yaml.safe_dump(document), "own.yaml").blueprint


def deployment_of(document: dict[str, Any]) -> DeploymentPlan:
    return build_plan(parsed(document)).models[0].deployments[0]


def worker_of(**model: Any) -> Process:
    """Return the worker of the shipped blueprint with other keys of its model."""
    document = copy.deepcopy(ELASTIC)
    load = model.pop("load", None)
    document["spec"]["models"][0].update(model)
    if load is not None:
        document["spec"]["models"][0]["deployments"][0]["aggregated"]["scaledBy"] = {"load": load}
    [worker] = deployment_of(document).workers
    return worker


def scaling_of(process: Process) -> Scaling:
    assert process.scaling is not None
    return process.scaling


def target(metric: str, **model: Any) -> float:
    trigger, _ = scaling_of(worker_of(load={"metric": metric}, **model)).triggers
    return trigger.target


def test_an_elastic_worker_starts_with_the_least_and_is_sized_for_the_most() -> None:
    worker = worker_of()
    scaling = scaling_of(worker)
    assert (scaling.least, scaling.most) == (2, 12)
    assert (worker.replicas, worker.maximum, worker.pods) == (2, 12, 12)
    assert worker.rollout.max_unavailable == 1
    [floor] = scaling.floors
    assert scaling.fallback_replicas == floor.replicas == 4


def test_a_fixed_number_has_no_scaling() -> None:
    plan = build_plan(load_blueprint("quickstart-g6e").blueprint)
    assert {process.scaling for process in plan.models[0].deployments[0].processes} == {None}


def test_the_target_in_tokens_is_the_worker_s_load_less_growth_and_tolerance() -> None:
    blueprint = parsed(ELASTIC)
    [resolved] = resolve(blueprint, 0, 0)
    load = worker_load(resolved)
    trigger = scaling_of(build_plan(blueprint).models[0].deployments[0].workers[0]).triggers[0]
    seconds = re.search(r"A further worker takes (\d+) s", trigger.why)
    assert seconds is not None
    growth = (int(seconds[1]) + 15 + 15) / GROWTH_SECONDS
    by_hand = load.requests * 3000 / (1 + growth) / 1.1
    assert trigger.target == pytest.approx(by_hand, rel=0.005)
    assert f"{trigger.target:,.0f} tokens per worker" in trigger.why
    assert trigger.metric_type == "AverageValue"


def test_a_longer_start_leaves_more_of_a_worker_free() -> None:
    quick, slow = Headroom(30.0, 15, ""), Headroom(270.0, 15, "")
    assert slow.growth == pytest.approx(0.5)
    assert quick.target(100.0) == pytest.approx(100 / 1.1 / 1.1)
    assert slow.target(100.0) == pytest.approx(100 / 1.5 / 1.1)


def reason_of(measured: dict[str, int], **model: Any) -> str:
    """Return why the shipped blueprint's workers have their target, with start times that a user measured."""
    document = copy.deepcopy(ELASTIC)
    document["spec"]["models"][0].update(model)
    workers = document["spec"]["models"][0]["deployments"][0]["aggregated"]
    workers["measuredStart"] = measured
    return scaling_of(deployment_of(document).workers[0]).triggers[0].why


_FETCHED = "image unknown, counted as 0 s; weights 26 s, computed"


@pytest.mark.parametrize(
    ("measured", "seconds", "launch", "engine"),
    [
        ({}, 207, "94 s, published", "87 s, published"),
        ({"launchSeconds": 200}, 313, "200 s, measured", "87 s, published"),
        ({"launchSeconds": 60, "engineSeconds": 20}, 106, "60 s, measured", "20 s, measured"),
    ],
)
def test_each_part_of_the_start_says_where_its_time_is_from(
    measured: dict[str, int], seconds: int, launch: str, engine: str
) -> None:
    parts = f"launch {launch}; {_FETCHED}; engine {engine}"
    assert f"A further worker takes {seconds} s to start ({parts})" in reason_of(measured)


def test_an_engine_without_a_published_start_is_unknown() -> None:
    parts = f"launch 94 s, published; {_FETCHED}; engine unknown, counted as 0 s"
    assert f"120 s to start ({parts})" in reason_of({}, engine={"sglang": {}})


@pytest.mark.parametrize("metric", ["tokensInFlight", "kvCacheUse"])
def test_a_tighter_objective_lowers_the_target(metric: str) -> None:
    loose = target(metric, objectives={"timePerOutputTokenP90Ms": 60})
    tight = target(metric, objectives={"timePerOutputTokenP90Ms": 35})
    assert 0 < tight < loose


def test_the_tightest_objective_for_tokens_decides_and_a_whole_request_bounds_them() -> None:
    """Workers carried as many requests as the 90th percentile of tokens allowed, whatever else was stated."""

    def of(**objectives: Any) -> float:
        return target("tokensInFlight", objectives=objectives)

    several = of(timePerOutputTokenMs={"p50": 35, "p99": 60})
    assert several == of(timePerOutputTokenP90Ms=35) == of(timePerOutputTokenMs={"p90": 35})
    # 199 further tokens of 35 ms, and less than a second for the first one.
    assert several < of(requestMs={"p99": 199 * 35 + 1000}) < of(timePerOutputTokenP90Ms=60)


def test_the_latency_that_scales_is_that_of_the_objective_s_percentile() -> None:
    [trigger, _] = scaling_of(
        worker_of(
            load={"metric": "timeToFirstToken"}, objectives={"timeToFirstTokenMs": {"p50": 90, "p95": 900}}
        )
    ).triggers
    assert "histogram_quantile(0.95, " in trigger.query
    assert "The objective is 900 ms" in trigger.why


@pytest.mark.parametrize("metric", ["queueLength", "timeToFirstToken"])
def test_a_tighter_first_token_lowers_the_target(metric: str) -> None:
    loose = target(metric, objectives={"timeToFirstTokenP90Ms": 4000})
    tight = target(metric, objectives={"timeToFirstTokenP90Ms": 1000})
    assert 0 < tight < loose


def test_a_latency_is_compared_as_it_is() -> None:
    trigger, _ = scaling_of(worker_of(load={"metric": "timeToFirstToken"})).triggers
    assert trigger.metric_type == "Value"
    assert trigger.target < 2000


def test_the_user_s_target_is_kept() -> None:
    trigger, _ = scaling_of(worker_of(load={"metric": "queueLength", "target": 3.5})).triggers
    assert (trigger.target, trigger.why) == (3.5, "Set in the blueprint.")


@pytest.mark.parametrize("stack", [{"dynamo": {}}, {"llmD": {}}], ids=["dynamo", "llm-d"])
@pytest.mark.parametrize("load", [{}, {"metric": "timeToFirstToken"}, {"metric": "kvCacheUse"}])
def test_the_last_trigger_guards_what_is_in_flight(load: dict[str, Any], stack: dict[str, Any]) -> None:
    *others, guard = scaling_of(worker_of(load=load, stack=stack)).triggers
    [resolved] = resolve(parsed(ELASTIC), 0, 0)
    full = worker_load(resolved).requests
    assert (guard.name, guard.metric_type) == ("requests-in-flight", "AverageValue")
    assert guard.target == pytest.approx(full / 1.1, abs=0.01), (
        "a full worker, less the autoscaler's tolerance"
    )
    assert f"A full worker has {full:.4g} requests" in guard.why
    assert guard.query not in {each.query for each in others}


def test_right_loads_need_more_workers_than_the_guard() -> None:
    """At any number of requests, so that the guard changes nothing while the loads are right."""
    tokens, _, guard = scaling_of(worker_of()).triggers
    assert tokens.target / 3000 < guard.target


def test_a_target_of_the_user_s_is_guarded_by_the_kv_cache() -> None:
    """The user may fill workers beyond what the plan thinks of their objectives."""
    _, guard = scaling_of(worker_of(load={"metric": "tokensInFlight", "target": 200_000})).triggers
    [resolved] = resolve(parsed(ELASTIC), 0, 0)
    load = worker_load(resolved)
    assert load.held > load.requests
    assert guard.target == pytest.approx(load.held / 1.1, abs=0.01)


def test_prefill_workers_are_guarded_by_requests_without_a_first_token() -> None:
    document = copy.deepcopy(DISAGGREGATED)
    document["spec"]["observability"] = {}
    for workers in document["spec"]["models"][0]["deployments"][0]["disaggregated"].values():
        workers |= {"replicas": {"min": 1, "max": workers["replicas"]}, "scaledBy": {"load": {}}}
    prefill, decode = (scaling_of(each).triggers[-1].query for each in deployment_of(document).workers)
    assert "dynamo_frontend_queued_requests" in prefill
    assert "dynamo_frontend_inflight_requests" in decode


def test_the_load_of_every_worker_is_counted_once_however_many_frontends_report_it() -> None:
    tokens, queue, _ = scaling_of(worker_of()).triggers
    # The plan gives vLLM blocks of 64 tokens.
    counted = "64 * sum(max by (worker_id, dp_rank) (dynamo_frontend_worker_active_decode_blocks{"
    assert tokens.query.startswith(counted)
    assert queue.query == 'sum(dynamo_frontend_queued_requests{release="qwen3-8b-elastic",role="frontend"})'


def test_without_the_kv_router_requests_in_flight_count_with_their_mean_prompt() -> None:
    trigger, _ = scaling_of(worker_of(load={"metric": "tokensInFlight"}, routing={"roundRobin": {}})).triggers
    assert trigger.query == (
        '3000 * sum(dynamo_frontend_inflight_requests{release="qwen3-8b-elastic",role="frontend"})'
    )


def test_llm_d_is_measured_at_its_workers() -> None:
    tokens, queue, _ = scaling_of(worker_of(stack={"llmD": {}})).triggers
    assert 'sum(vllm:kv_cache_usage_perc{release="qwen3-8b-elastic",role="worker"})' in tokens.query
    assert "dynamo" not in tokens.query + queue.query


def test_prefill_and_decode_keep_the_ratio_of_their_capacities() -> None:
    document = copy.deepcopy(DISAGGREGATED)
    document["spec"]["observability"] = {}
    both = document["spec"]["models"][0]["deployments"][0]["disaggregated"]
    for workers in both.values():
        workers["replicas"] = {"min": 1, "max": workers["replicas"]}
        workers["scaledBy"] = {"load": {"metric": "tokensInFlight"}}
    blueprint = parsed(document)
    roles = resolve(blueprint, 0, 0)
    processes = build_plan(blueprint).models[0].deployments[0].workers
    # Requests per second that one worker serves at its target: by Little's law its load over the time of one.
    share = []
    for resolved, process in zip(roles, processes, strict=True):
        trigger, _ = scaling_of(process).triggers
        share.append(trigger.target / worker_load(resolved).requests / resolved.traffic.means.input_tokens)
        assert role_capacity(resolved) is not None
    assert share[0] == pytest.approx(share[1], rel=0.01), "both keep the same part of their capacity free"


def test_prompts_beyond_the_profile_leave_decode_workers_with_a_load() -> None:
    """Bug: a long prompt, which other workers compute, ended the plan of decode workers with an error."""
    document = yaml.safe_load((blueprints_directory() / "p5en-disaggregated.yaml").read_text("utf-8"))
    document["spec"]["models"][0]["workload"]["inputTokens"] = 20_000
    prefill, decode = resolve(Blueprint.model_validate(document), 0, 0)
    assert "no latency profile" in worker_load(prefill).reason
    load = worker_load(decode)
    assert "(simulated)" in load.reason
    assert (load.waiting, "no latency profile" in load.waiting_reason) == (1.0, True)
