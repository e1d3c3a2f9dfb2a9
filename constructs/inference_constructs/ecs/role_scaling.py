"""Scales an ECS service by the published loads of its role, and keeps its floors by schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_contracts import scale_metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTarget:
    """A load that a policy keeps at a value."""

    name: str
    """Name within the role."""
    dimensions: Mapping[str, str]
    """Dimensions of its metric."""
    value: float
    """Value to keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFloor:
    """A smallest number of tasks from a time on."""

    schedule: str
    """Cron expression in AWS' form."""
    time_zone: str
    """Its IANA time zone."""
    minimum: int
    """The number."""


class RoleScaling(autoscaling.ScalableTarget):
    """The number of tasks of a service, which follows its load between two numbers.

    Parameters
    ----------
    cluster_name, service_name
        Names of the cluster and of the service, which must exist before. Its desired count is left out of its
        properties, so that a deployment does not reset it.
    minimum, maximum
        Smallest and largest number of tasks.
    loads
        Loads. The one that needs most tasks decides.
    floors
        Smallest numbers by schedule. The newest action holds.
    scale_in_cooldown_seconds, scale_out_cooldown_seconds
        Time after which a policy removes, or adds, tasks again.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        service_name: str,
        minimum: int,
        maximum: int,
        loads: Sequence[LoadTarget],
        floors: Sequence[TaskFloor],
        scale_in_cooldown_seconds: int,
        scale_out_cooldown_seconds: int,
    ) -> None:
        stack = cdk.Stack.of(scope)
        super().__init__(
            scope,
            construct_id,
            service_namespace=autoscaling.ServiceNamespace.ECS,
            resource_id=f"service/{cluster_name}/{service_name}",
            scalable_dimension="ecs:service:DesiredCount",
            min_capacity=minimum,
            max_capacity=maximum,
            # The role that Application Auto Scaling creates: its user guide, "Service-linked roles".
            role=iam.Role.from_role_arn(
                scope,
                f"{construct_id}Role",
                f"arn:{stack.partition}:iam::{stack.account}:role/aws-service-role/"
                "ecs.application-autoscaling.amazonaws.com/"
                "AWSServiceRoleForApplicationAutoScaling_ECSService",
                mutable=False,
            ),
        )
        for load in loads:
            self.scale_to_track_metric(
                f"Load-{load.name}",
                custom_metric=cloudwatch.Metric(
                    namespace=scale_metrics.METRIC_NAMESPACE,
                    metric_name=scale_metrics.LOAD,
                    dimensions_map=dict(load.dimensions),
                    # While the publisher is replaced, two write the same load, and a sum counts it twice.
                    statistic=cloudwatch.Stats.AVERAGE,
                    period=cdk.Duration.minutes(1),
                ),
                target_value=load.value,
                scale_in_cooldown=cdk.Duration.seconds(scale_in_cooldown_seconds),
                scale_out_cooldown=cdk.Duration.seconds(scale_out_cooldown_seconds),
            )
        for place, floor in enumerate(floors):
            self.scale_on_schedule(
                f"Floor{place}",
                schedule=autoscaling.Schedule.expression(floor.schedule),
                time_zone=cdk.TimeZone.of(floor.time_zone),
                min_capacity=floor.minimum,
            )
