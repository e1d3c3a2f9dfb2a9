"""Policies of a shipped elastic blueprint are the triggers of its plan."""

from __future__ import annotations

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.ecs.scaling_policies import published_roles, service_scaling
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.scale_metrics import METRIC_DIMENSIONS, read_roles, roles_json


def _blueprint(name: str) -> Blueprint:
    return load_blueprint(name).blueprint


def test_each_trigger_of_the_plan_is_published_and_followed() -> None:
    plan = build_plan(_blueprint("elastic-g6e"))
    [deployment] = [each for model in plan.models for each in model.deployments]
    [elastic] = [process for process in deployment.processes if process.scaling]
    assert elastic.scaling is not None
    scaling = service_scaling("elastic", deployment.release, elastic)
    assert scaling is not None
    assert (scaling.minimum, scaling.maximum) == (elastic.scaling.least, elastic.scaling.most)
    assert scaling.scale_in_cooldown_seconds == elastic.scaling.down_stabilization_seconds
    [role] = published_roles(plan)
    triggers = elastic.scaling.triggers
    assert [(each.query, each.metric_type) for each in role.triggers] == [
        (each.query, each.metric_type) for each in triggers
    ]
    assert [each.target for each in scaling.loads] == [each.target for each in triggers]
    for load, published in zip(scaling.loads, role.triggers, strict=True):
        assert tuple(load.dimensions) == METRIC_DIMENSIONS
        assert list(load.dimensions.values()) == ["elastic", role.release, role.role, published.name]


def test_the_publisher_reads_what_the_stack_writes() -> None:
    roles = published_roles(build_plan(_blueprint("elastic-g6e")))
    assert roles
    assert read_roles(roles_json(roles)) == roles


def test_a_role_of_a_fixed_number_does_not_scale() -> None:
    plan = build_plan(_blueprint("quickstart-g6e"))
    processes = [
        (each.release, process)
        for model in plan.models
        for each in model.deployments
        for process in each.processes
    ]
    assert {service_scaling("p", release, process) for release, process in processes} == {None}
    assert published_roles(plan) == ()
