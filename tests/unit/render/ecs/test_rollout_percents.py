"""Percents of a deployment: ECS keeps the plan's numbers of tasks with them."""

from __future__ import annotations

import math

import yaml
from hypothesis import given
from hypothesis import strategies as st

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.render.ecs.services import rollout_percents
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import Rollout
from tests.unit.render.ecs.one_word import on_ecs

_REPLICAS = st.integers(1, 5000)


@given(_REPLICAS, st.integers(1, 500), st.integers(0, 500))
def test_ecs_keeps_the_plans_numbers_of_tasks(replicas: int, unavailable: int, surge: int) -> None:
    """DeploymentConfiguration (API reference): the minimum is rounded up, the maximum down."""
    percents = rollout_percents(Rollout(surge, unavailable), replicas)
    stay = math.ceil(replicas * percents.minimum_healthy / 100)
    exist = math.floor(replicas * percents.maximum / 100)
    # With room for an extra task, ECS starts it first: capacity does not fall while a host drains.
    minimum = replicas if exist > replicas else max(0, replicas - unavailable)
    maximum = replicas + surge
    if replicas <= 100:
        assert (stay, exist) == (minimum, maximum)
    assert minimum - replicas / 100 < stay <= minimum
    assert maximum - replicas / 100 < exist <= maximum


@given(_REPLICAS, st.integers(1, 500), st.integers(0, 500))
def test_a_deployment_can_always_proceed(replicas: int, unavailable: int, surge: int) -> None:
    """It turns red if ECS may neither stop a task nor start one: the deployment would wait for ever."""
    percents = rollout_percents(Rollout(surge, unavailable), replicas)
    stay = math.ceil(replicas * percents.minimum_healthy / 100)
    exist = math.floor(replicas * percents.maximum / 100)
    assert exist > replicas or (stay < replicas and exist == replicas)


def test_one_of_two_workers_never_stops_first_if_there_is_room_for_a_third() -> None:
    percents = rollout_percents(Rollout(max_surge=1, max_unavailable=1), 2)
    assert (percents.minimum_healthy, percents.maximum) == (100, 150)


def _warnings(name: str, **workers: int) -> list[str]:
    document = yaml.safe_load(on_ecs(name))
    document["spec"]["pools"][0]["nodes"] = workers
    found = EcsTarget.planned_findings(parse_blueprint(yaml.safe_dump(document), "own.yaml").blueprint)
    return [each.message for each in found if each.severity == "warning"]


def test_a_pool_without_room_for_another_worker_is_a_warning_with_the_arithmetic() -> None:
    """It turns red if half of the capacity goes in each deployment, and nobody says it."""
    said = [each for each in _warnings("quickstart-g6e", max=2) if "stop before" in each]
    assert said == [
        "in each deployment, and every two weeks when ECS replaces the hosts, 1 of 2 workers of "
        "'qwen3-8b-main-worker-managed' stop before others start, because pool 'l40s' has no room for one "
        "more: 50 % of the capacity is missing for up to 1,070 s; raise 'nodes.max' of the pool by the nodes "
        "of one worker, which run only meanwhile"
    ]
    assert not any("stop before" in each for each in _warnings("quickstart-g6e", max=3))


def test_grace_ends_with_cloudformations_patience() -> None:
    """It turns red if failed checks do not count for longer than CloudFormation waits, or nobody says it."""
    blueprint = parse_blueprint(on_ecs("trn2"), "own.yaml").blueprint
    plan = build_plan(blueprint)
    [deployment] = EcsTarget(blueprint, plan).render(plan.models[0])
    [server] = deployment.services
    assert (server.start_seconds, server.grace_seconds) == (11_840, 10_800)
    assert any("11,840 s" in each and "10,800 s" in each for each in _warnings("trn2", max=2))
    assert not any("CloudFormation" in each for each in _warnings("quickstart-g6e", max=3))
