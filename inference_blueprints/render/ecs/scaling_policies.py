"""How an elastic role's ECS service scales: the triggers of the plan as target tracking policies.

Application Auto Scaling scales out by the policy that needs most, and in only if all agree, as KEDA does with
several triggers
(https://docs.aws.amazon.com/autoscaling/application/userguide/target-tracking-scaling-policy-overview.html).
What a metric says is documented in ``runtime/task_targets/load_publisher.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from inference_blueprints.render.ecs.scaling_floors import ScheduledFloor, scheduled_floors
from inference_blueprints.serving.types import Process, ScaleTrigger, Scaling, ServingPlan
from inference_contracts.scale_metrics import PublishedRole, PublishedTrigger, load_dimensions

#: Time until the metric knows of a new desired count: it has points of one minute, and each is complete a
#: minute after it began. A larger need is met within it
#: (https://docs.aws.amazon.com/autoscaling/application/APIReference/API_TargetTrackingScalingPolicyConfiguration.html).
_SCALE_OUT_COOLDOWN_SECONDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedLoad:
    """A load that a target tracking policy follows."""

    name: str
    """Name within the role."""
    dimensions: Mapping[str, str]
    """Dimensions of the metric `scale_metrics.LOAD`."""
    target: float
    """Value to keep."""
    why: str
    """A sentence that explains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceScaling:
    """The range of a service's tasks, and how their number moves within it."""

    minimum: int
    maximum: int
    """`minimum`, `maximum`: Smallest and largest number of tasks."""
    loads: tuple[TrackedLoad, ...]
    """Loads that policies follow."""
    floors: tuple[ScheduledFloor, ...]
    """Smallest numbers by schedule, in the order in which they are defined."""
    scale_in_cooldown_seconds: int
    scale_out_cooldown_seconds: int
    """`scale_in_cooldown_seconds`, `scale_out_cooldown_seconds`: Time after which a policy removes, or adds,
    tasks again."""


def service_scaling(platform: str, release: str, process: Process) -> ServiceScaling | None:
    """Return how a process scales. None if its number is fixed.

    process: A process of the plan.
    Raises FloorScheduleError if Application Auto Scaling cannot keep its floors; `validate` reports it
        before.
    """
    scaling = process.scaling
    if scaling is None:
        return None
    published = _published(release, process, scaling)
    return ServiceScaling(
        minimum=scaling.least,
        maximum=scaling.most,
        loads=tuple(
            TrackedLoad(
                name=trigger.name,
                dimensions=load_dimensions(platform, published, _publish(trigger)),
                target=trigger.target,
                why=trigger.why,
            )
            for trigger in scaling.triggers
        ),
        floors=scheduled_floors(scaling.floors, scaling.least),
        scale_in_cooldown_seconds=scaling.down_stabilization_seconds,
        scale_out_cooldown_seconds=_SCALE_OUT_COOLDOWN_SECONDS,
    )


def published_roles(plan: ServingPlan) -> tuple[PublishedRole, ...]:
    """Return the elastic roles of a platform, whose loads are published."""
    return tuple(_roles(plan))


def _roles(plan: ServingPlan) -> Iterator[PublishedRole]:
    for model in plan.models:
        for deployment in model.deployments:
            for process in deployment.processes:
                if process.scaling is not None:
                    yield _published(deployment.release, process, process.scaling)


def _published(release: str, process: Process, scaling: Scaling) -> PublishedRole:
    return PublishedRole(
        release=release,
        role=process.role,
        triggers=tuple(_publish(trigger) for trigger in scaling.triggers),
    )


def _publish(trigger: ScaleTrigger) -> PublishedTrigger:
    return PublishedTrigger(name=trigger.name, query=trigger.query, metric_type=trigger.metric_type)
