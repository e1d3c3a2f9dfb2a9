"""Percents of a deployment: ECS keeps the plan's numbers of tasks with them."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from inference_blueprints.serving.types import Rollout
from inference_blueprints.targets.ecs.rollout_percents import rollout_percents

_REPLICAS = st.integers(1, 5000)


@given(_REPLICAS, st.integers(1, 500), st.integers(0, 500))
def test_ecs_keeps_the_plans_numbers_of_tasks(replicas: int, unavailable: int, surge: int) -> None:
    """DeploymentConfiguration (API reference): the minimum is rounded up, the maximum down."""
    percents = rollout_percents(Rollout(surge, unavailable), replicas)
    stay = math.ceil(replicas * percents.minimum_healthy / 100)
    exist = math.floor(replicas * percents.maximum / 100)
    least, most = max(0, replicas - unavailable), replicas + surge
    if replicas <= 100:
        assert (stay, exist) == (least, most)
    assert least - replicas / 100 < stay <= least
    assert most - replicas / 100 < exist <= most


@given(_REPLICAS, st.integers(1, 500))
def test_a_deployment_can_always_proceed(replicas: int, unavailable: int) -> None:
    percents = rollout_percents(Rollout(0, unavailable), replicas)
    assert math.ceil(replicas * percents.minimum_healthy / 100) < replicas
    assert percents.maximum >= 100
