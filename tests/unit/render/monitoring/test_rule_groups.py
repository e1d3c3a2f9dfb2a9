"""A rule about several deployments selects those that it is about, and each deployment is in one rule."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.monitoring.alarm_table import late_alarm_rows
from inference_blueprints.render.monitoring.dashboard_table import dashboard_rows
from inference_blueprints.render.monitoring.recording_rules import RecordingRule, late_latencies, rules
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ModelPlan, ServingPlan
from inference_blueprints.spec.types import LatencyPercentiles, Objectives

_LIMITS = {"a": 500, "b": 900, "c": 900}


def _model(name: str, shipped: str, engine: str = "vllm") -> ModelPlan:
    (model,) = build_plan(load_blueprint(shipped).blueprint).models
    planned = model.deployments[0]
    processes = tuple(
        dataclasses.replace(each, engine=each.engine and dataclasses.replace(each.engine, engine=engine))
        for each in planned.processes
    )
    deployment = dataclasses.replace(planned, model=name, release=f"{name}-main", processes=processes)
    return dataclasses.replace(model, name=name, deployments=(deployment,))


@pytest.fixture(scope="module")
def found() -> Sequence[RecordingRule]:
    models = (
        _model("a", "quickstart-g6e"),  # one GPU a worker
        _model("b", "p5en-disaggregated"),  # several, with two roles
        _model("c", "quickstart-g6e", "sglang"),
        _model("d", "llm-d-disaggregated"),  # without an objective, on another stack
    )
    objectives = {name: Objectives(time_to_first_token_p90_ms=limit) for name, limit in _LIMITS.items()}
    return rules("try", ServingPlan(models=models, node_systems={}), objectives=objectives)


def _models(rule: RecordingRule) -> set[str]:
    """Return the models that a rule selects, of those that there are."""
    for label, ending in (("model", ""), ("release", "-main")):
        listed = set(re.findall(rf'{label}=~"([^"]+)"', rule.expression))
        if listed:
            (names,) = listed
            return {name.removesuffix(ending) for name in names.split("|")}
    return set("abcd")


def _about(found: Sequence[RecordingRule], record: str, words: str = "") -> list[set[str]]:
    return [_models(rule) for rule in found if rule.record == record and words in rule.expression]


def test_each_program_s_rule_is_about_its_models(found: Sequence[RecordingRule]) -> None:
    assert _about(found, "serving_requests_per_second") == [{"a", "b", "c"}, {"d"}]
    assert _about(
        found, "serving_requests_waiting", 'sglang:num_queue_reqs{platform="try",role="worker"'
    ) == [{"c"}]


def test_each_objective_s_rule_is_about_its_models(found: Sequence[RecordingRule]) -> None:
    assert _about(found, "serving_first_token_late_ratio_1h") == [{"a"}, {"b", "c"}]
    assert _about(found, "serving_output_token_late_ratio_1h") == []


def test_other_percentiles_and_whole_requests_have_rules_alarms_and_graphs_of_their_own() -> None:
    """A file with `p95` had no series and no alarm; in Dynamo's first bucket, all would be late."""
    stated = Objectives(
        time_to_first_token_ms=LatencyPercentiles(p50=200, p90=500, p95=900),
        request_ms=LatencyPercentiles(p90=1_900, p99=9_000),
    )
    plan = ServingPlan(models=(_model("a", "quickstart-g6e"),), node_systems={})
    late = late_latencies(plan, {"a": stated})
    assert late == {
        *(("timeToFirstTokenMs", each) for each in (50, 90, 95)),
        ("requestMs", 99),
    }
    recorded = {each.record for each in rules("try", plan, objectives={"a": stated})}
    names = {"serving_first_token_late_ratio", "serving_first_token_late_ratio_p95"}
    assert {f"{name}_{window}" for name in names for window in ("5m", "1h")} <= recorded
    assert "serving_request_late_ratio_p99_1h" in recorded
    assert "serving_request_late_ratio_1h" not in recorded
    added = {row.name: row for row in late_alarm_rows(late)}
    assert added.keys() == {
        f"{name}-{speed}"
        for name in ("first-token-late-p50", "first-token-late-p95", "whole-requests-late-p99")
        for speed in ("fast", "slow")
    }
    assert "_p95_1h{$labels} > 0.25 " in added["first-token-late-p95-fast"].query
    # Half of the requests may be late: twice as many cannot be.
    assert "_p50_1h{$labels} > 0.9 " in added["first-token-late-p50-fast"].query
    assert added["whole-requests-late-p99-slow"].runbook == "docs/runbooks/whole-requests-late-slow.md"
    shown = {name for row in dashboard_rows(late=late) for panel in row.panels for name in panel.series}
    assert {"serving_first_token_late_ratio_p50_5m", "serving_request_late_ratio_p99_5m"} <= shown


def test_a_platform_with_ninetieth_percentiles_alone_has_the_alarms_and_graphs_of_every_platform() -> None:
    plan = ServingPlan(models=(_model("a", "quickstart-g6e"),), node_systems={})
    stated = Objectives(time_to_first_token_p90_ms=900, time_per_output_token_p90_ms=50)
    late = late_latencies(plan, {"a": stated})
    assert len(late) == 2
    assert late_alarm_rows(late) == ()
    assert dashboard_rows(late=late) == dashboard_rows()


def test_workers_with_other_numbers_of_gpus_are_in_other_rules(found: Sequence[RecordingRule]) -> None:
    rules_of_gpus = [rule for rule in found if rule.record == "serving_gpus"]
    counted = {
        (name, role): int(rule.expression.rpartition("*")[2])
        for rule in rules_of_gpus
        for name in _models(rule)
        for role in re.findall(r'role="(\w+)"', rule.expression)
    }
    planned = {("a", "worker"): 1, ("c", "worker"): 1}
    assert planned.items() <= counted.items()
    assert {key for key in counted if key[0] in "bd"} == {
        (name, role) for name in "bd" for role in ("prefill", "decode")
    }
    assert all(counted[key] > 0 for key in counted)


def test_every_part_of_the_plan_is_counted_once(found: Sequence[RecordingRule]) -> None:
    # Two roles each of b and d, one each of a and c.
    for record in ("serving_workers_up", "serving_gpus", "serving_workers_least", "serving_batch_size"):
        assert sum(rule.series for rule in found if rule.record == record) == 6, record


def test_deployments_of_a_model_with_other_numbers_of_gpus_are_in_other_rules() -> None:
    model = _model("a", "quickstart-g6e")
    (worker,) = model.deployments[0].workers
    wider = dataclasses.replace(model.deployments[0], name="wide", release="a-wide")
    processes = tuple(
        dataclasses.replace(each, nodes=2) if each.name == worker.name else each for each in wider.processes
    )
    plan = ServingPlan(
        models=(
            dataclasses.replace(
                model,
                deployments=(model.deployments[0], dataclasses.replace(wider, processes=processes)),
            ),
        ),
        node_systems={},
    )
    selected = {
        re.findall(r'release=~"(.+?)"', rule.expression)[0]: rule.expression.rpartition("* ")[2]
        for rule in rules("try", plan, objectives={})
        if rule.record == "serving_gpus"
    }
    assert selected == {"a-main": "1", "a-wide": "2"}
