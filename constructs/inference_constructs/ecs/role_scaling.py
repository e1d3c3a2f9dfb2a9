"""Scales an ECS service by the published loads of its role, and keeps its floors by schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecs as ecs

from inference_blueprints.contracts import scale_metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTarget:
    """A load that a policy keeps at a value.

    Parameters
    ----------
    name
        Name within the role.
    dimensions
        Dimensions of its metric.
    value
        Value to keep.
    """

    name: str
    dimensions: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFloor:
    """A smallest number of tasks from a time on.

    Parameters
    ----------
    schedule
        Cron expression in AWS' form.
    time_zone
        Its IANA time zone.
    least
        The number.
    """

    schedule: str
    time_zone: str
    least: int


def scale_role(
    service: ecs.BaseService,
    *,
    least: int,
    most: int,
    loads: Sequence[LoadTarget],
    floors: Sequence[TaskFloor],
    scale_in_cooldown_seconds: int,
    scale_out_cooldown_seconds: int,
) -> ecs.ScalableTaskCount:
    """Let a service follow its load between two numbers of tasks.

    Parameters
    ----------
    service
        The service. Its desired count must be left out, so that a deployment does not reset it.
    least, most
        Smallest and largest number of tasks.
    loads
        Loads. The one that needs most tasks decides.
    floors
        Smallest numbers by schedule. The newest action holds.
    scale_in_cooldown_seconds, scale_out_cooldown_seconds
        Time after which a policy removes, or adds, tasks again.
    """
    tasks = service.auto_scale_task_count(min_capacity=least, max_capacity=most)
    for load in loads:
        tasks.scale_to_track_custom_metric(
            f"Load-{load.name}",
            metric=cloudwatch.Metric(
                namespace=scale_metrics.METRIC_NAMESPACE,
                metric_name=scale_metrics.LOAD,
                dimensions_map=dict(load.dimensions),
                # Two publishers write the same load, so a sum would count it twice.
                statistic=cloudwatch.Stats.AVERAGE,
                period=cdk.Duration.minutes(1),
            ),
            target_value=load.value,
            scale_in_cooldown=cdk.Duration.seconds(scale_in_cooldown_seconds),
            scale_out_cooldown=cdk.Duration.seconds(scale_out_cooldown_seconds),
        )
    for place, floor in enumerate(floors):
        tasks.scale_on_schedule(
            f"Floor{place}",
            schedule=autoscaling.Schedule.expression(floor.schedule),
            time_zone=cdk.TimeZone.of(floor.time_zone),
            min_capacity=floor.least,
        )
    return tasks
