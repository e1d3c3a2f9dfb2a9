"""How many tasks of a service run during a deployment, as ECS counts them."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.serving.types import Rollout


@dataclass(frozen=True, slots=True)
class RolloutPercents:
    """Limits in percent of the wanted number of tasks."""

    minimum_healthy: int
    """Tasks that stay. ECS rounds their number up."""
    maximum: int
    """Tasks that may exist. ECS rounds their number down."""


def rollout_percents(rollout: Rollout, replicas: int) -> RolloutPercents:
    """Return the percents with which ECS keeps the plan's numbers of tasks.

    With up to 100 replicas, the numbers are exactly those of the plan. Above, one percent is more than one
    task: fewer than one percent of the tasks may be missing in addition, and no more than planned are extra.
    (DeploymentConfiguration of the API reference.)

    If there is room for an extra task, none may be missing: below 100 percent, ECS may stop tasks before it
    starts others, also on a host that drains (Amazon ECS Developer Guide, "Draining Amazon ECS container
    instances").

    rollout: Tasks that may be missing, and extra ones.
    replicas: Wanted number of tasks.
    """
    most = replicas + rollout.max_surge
    maximum = -(-100 * most // replicas)
    if replicas * maximum // 100 > most:
        maximum -= 1
    minimum = replicas if maximum > 100 else max(0, replicas - rollout.max_unavailable)  # noqa: PLR2004 - all
    return RolloutPercents(100 * minimum // replicas, maximum)
