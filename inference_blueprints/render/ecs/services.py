"""An ECS service as data: the tasks of one process of a deployment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_blueprints.render.ecs.rollout_percents import RolloutPercents
from inference_blueprints.render.ecs.scaling_policies import ServiceScaling
from inference_blueprints.render.ecs.tasks import Compute, RenderedTask
from inference_blueprints.serving.types import Role


@dataclass(frozen=True, slots=True)
class ProviderShare:
    """A capacity provider of a service, and its part of the tasks.

    Parameters
    ----------
    provider
        Its name.
    base
        Tasks that it runs first.
    weight
        Its part of all others.
    """

    provider: str
    base: int
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedService:
    """The service of one process.

    Parameters
    ----------
    name
        Name of the service, unique in the cluster.
    process, role
        Name and role of the process in the plan.
    compute
        What runs its tasks.
    pool
        Pool of its hosts. None on Fargate.
    strategy
        Capacity providers.
    tasks
        Number of tasks. None if it follows the load, so that a deployment does not reset it.
    scaling
        How the number follows the load. None if it is fixed.
    percents
        Tasks during a deployment.
    grace_seconds
        Time for which failed checks of a new task do not count: that of loading the model.
    drain_seconds
        Longest time that the load balancer waits for the requests of a task that stops. None for a service
        that it does not reach.
    entry_port
        Port to which the load balancer sends requests. None for a service that it does not reach.
    health_path
        Path that the load balancer checks. None for a service that it does not reach.
    packed
        Whether tasks fill one host after the other.
    awaits_weights
        Release of the copy of the weights that must be complete before a task starts. None if none must.
    tags
        Labels of its metrics by tag, which its tasks inherit.
    task
        Task definition.
    """

    name: str
    process: str
    role: Role
    compute: Compute
    pool: str | None
    strategy: tuple[ProviderShare, ...]
    tasks: int | None
    scaling: ServiceScaling | None
    percents: RolloutPercents
    grace_seconds: int
    drain_seconds: int | None
    entry_port: int | None
    health_path: str | None
    packed: bool
    awaits_weights: str | None
    tags: Mapping[str, str]
    task: RenderedTask


@dataclass(frozen=True, slots=True)
class RenderedDeployment:
    """The services of a deployment. The entry point comes first.

    Parameters
    ----------
    release
        Name of the deployment in the platform.
    services
        Its services.
    """

    release: str
    services: tuple[RenderedService, ...]

    @property
    def entry_point(self) -> RenderedService:
        """The service that answers the OpenAI API."""
        return self.services[0]
