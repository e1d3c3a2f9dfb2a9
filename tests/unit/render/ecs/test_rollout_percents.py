"""Percents of a deployment: ECS keeps the plan's numbers of tasks with them."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from inference_blueprints.render.ecs.services import rollout_percents
from inference_blueprints.serving.types import Rollout

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
