"""No alarm has more series than CloudWatch takes, whatever the size of the plan."""

from __future__ import annotations

import dataclasses

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.monitoring.alarm_table import (
    MAX_CONTRIBUTORS,
    MAX_QUERY_LETTERS,
    alarm_rows,
    platform_alarms,
)
from inference_blueprints.render.monitoring.recording_rules import rules
from inference_blueprints.render.monitoring.recordings import recordings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ModelPlan, ServingPlan

#: The most that a blueprint may have: 100 models with 5 deployments each, names of 40 letters.
_MODELS, _DEPLOYMENTS, _LETTERS = 100, 5, 40


@pytest.fixture(scope="module")
def largest() -> ServingPlan:
    plan = build_plan(load_blueprint("p5en-disaggregated").blueprint)
    (model,) = plan.models

    def copy(number: int) -> ModelPlan:
        name = f"m{number:03}".ljust(_LETTERS, "x")
        deployments = tuple(
            dataclasses.replace(model.deployments[0], name=f"d{each}", model=name, release=f"{name}-d{each}")
            for each in range(_DEPLOYMENTS)
        )
        return dataclasses.replace(model, name=name, deployments=deployments)

    return ServingPlan(
        models=tuple(copy(number) for number in range(_MODELS)), node_systems=plan.node_systems
    )


def test_the_largest_plan_stays_below_the_limits(largest: ServingPlan) -> None:
    alarms = platform_alarms("p" * 20, largest)
    assert {alarm.name: alarm.contributors for alarm in alarms if alarm.contributors > MAX_CONTRIBUTORS} == {}
    assert {alarm.name: len(alarm.query) for alarm in alarms if len(alarm.query) > MAX_QUERY_LETTERS} == {}
    # Every series is in one alarm: two roles per deployment.
    waiting = [alarm for alarm in alarms if alarm.row.name == "requests-waiting"]
    assert sum(alarm.contributors for alarm in waiting) == _MODELS * _DEPLOYMENTS * 2
    assert len({alarm.name for alarm in alarms}) == len(alarms)


def test_an_evaluation_reads_the_values_of_each_window_of_each_series() -> None:
    plan = build_plan(load_blueprint("quickstart-g6e").blueprint)
    alarms = {alarm.name: alarm for alarm in platform_alarms("quickstart", plan)}
    # One role: an average over 5 minutes, two gauges.
    assert alarms["requests-waiting"].samples == 5 + 1 + 1
    # Five selectors, of which two have 15 minutes.
    assert alarms["workers-missing"].samples == 3 + 2 * 15
    assert alarms["efa-drops"].samples == MAX_CONTRIBUTORS * 5


@pytest.mark.parametrize("name", ["quickstart-g6e", "elastic-g6e"])
def test_a_small_plan_has_one_alarm_per_row_and_those_of_scaling_if_workers_are_elastic(name: str) -> None:
    blueprint = load_blueprint(name).blueprint
    plan = build_plan(blueprint)
    assert plan.is_elastic == (name == "elastic-g6e")
    alarms = platform_alarms(blueprint.metadata.name, plan)
    wanted = [row.name for row in alarm_rows() if (plan.is_elastic or not row.elastic) and not row.door]
    assert [alarm.name for alarm in alarms] == wanted
    assert ("scaler-gone" in wanted) == plan.is_elastic
    found = {rule.record for rule in rules(blueprint.metadata.name, plan, objectives={})}
    assert ("platform_scaler_programs" in found) == plan.is_elastic


def test_a_platform_on_ecs_has_no_alarm_about_kubernetes() -> None:
    """There, a count of KEDA's programs is always 0, and would raise the alarm for ever."""
    plan = build_plan(load_blueprint("elastic-g6e").blueprint)
    everywhere = {alarm.row.name for alarm in platform_alarms("elastic", plan)}
    on_ecs = {alarm.row.name for alarm in platform_alarms("elastic", plan, on_ecs=True)}
    of_kubernetes = {
        record.name for record in recordings() if any("keda" in promql for promql in record.promql.values())
    }
    asks = {
        row.name
        for row in alarm_rows()
        if "k8s" in row.query or any(name in row.query for name in of_kubernetes)
    }
    assert everywhere - on_ecs == asks == {"scaler-errors", "scaler-gone", "efa-drops"}
