"""An ECS service as data: the tasks of one process of a deployment."""

from __future__ import annotations

from collections.abc import Mapping

from inference_blueprints.render.ecs.scaling_policies import ServiceScaling
from inference_blueprints.render.ecs.tasks import Compute, RenderedTask
from inference_blueprints.serving.types import Role, Rollout
from inference_contracts.records import dataclass

#: Longest time for which CloudFormation waits for a service that is created or changed, in seconds. Then it
#: takes the stack back (AWS re:Post, Knowledge Center, "ECS service failed to stabilize": three hours;
#: aws/amazon-ecs-agent#1996).
MAX_WAIT_SECONDS = 3 * 3600

# How many tasks of a service run during a deployment, as ECS counts them.


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
    replicas: Wanted number of tasks. 0 if there may be none: then all may be missing, and none is extra.
    """
    if not replicas:
        return RolloutPercents(0, 100)
    most = replicas + rollout.max_surge
    maximum = -(-100 * most // replicas)
    if replicas * maximum // 100 > most:
        maximum -= 1
    minimum = replicas if maximum > 100 else max(0, replicas - rollout.max_unavailable)  # noqa: PLR2004 - all
    return RolloutPercents(100 * minimum // replicas, maximum)


@dataclass(frozen=True, slots=True)
class ProviderShare:
    """A capacity provider of a service, and its part of the tasks."""

    provider: str
    """Its name."""
    base: int
    """Tasks that it runs first."""
    weight: int
    """Relative weight of the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedService:
    """The service of one process."""

    name: str
    """Name of the service, unique in the cluster."""
    process: str
    role: Role
    """`process`, `role`: Name and role of the process in the plan."""
    compute: Compute
    """What runs its tasks."""
    pool: str | None
    """Pool of its hosts. None on Fargate."""
    strategy: tuple[ProviderShare, ...]
    """Capacity providers."""
    tasks: int | None
    """Number of tasks. None if it follows the load, so that a deployment does not reset it."""
    scaling: ServiceScaling | None
    """How the number follows the load. None if it is fixed."""
    percents: RolloutPercents
    """Tasks during a deployment."""
    grace_seconds: int
    """Time for which failed checks of a new task do not count: that of loading the model, at most
    `MAX_WAIT_SECONDS`."""
    start_seconds: int
    """Longest time until a new task answers, as planned."""
    drain_seconds: int | None
    """Longest time that the load balancer waits for the requests of a task that stops. None for a service
    that it does not reach."""
    entry_port: int | None
    """Port to which the load balancer sends requests. None for a service that it does not reach."""
    health_path: str | None
    """Path that the load balancer checks at `entry_port`. None for a service that it does not reach."""
    packed: bool
    """Whether tasks fill one host after the other."""
    awaits_weights: str | None
    """Release of the copy of the weights that must be complete before a task starts. None if none must."""
    tags: Mapping[str, str]
    """Labels of its metrics by tag, which its tasks inherit."""
    task: RenderedTask
    """Task definition."""


@dataclass(frozen=True, slots=True)
class RenderedDeployment:
    """The services of a deployment. The entry point comes first."""

    release: str
    """Name of the deployment in the platform."""
    services: tuple[RenderedService, ...]

    @property
    def entry_point(self) -> RenderedService:
        """The service that answers the OpenAI API."""
        return self.services[0]
