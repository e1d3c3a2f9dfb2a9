"""The number of tasks of a service, which follows a load or the use of its processors."""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_iam as iam
from constructs import Construct

#: A task that ends waits for its streams, so none ends for a short pause.
_IN_SECONDS: Final = 900
_OUT_SECONDS: Final = 60


class TaskScaling(autoscaling.ScalableTarget):
    """The number of tasks of a service between two numbers.

    Parameters
    ----------
    cluster_name, service_name
        Names of the cluster and of the service, which must exist before. Its desired count is left out of its
        properties, so that a deployment does not reset it.
    minimum, maximum
        Smallest and largest number of tasks.
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
    ) -> None:
        stack = cdk.Stack.of(scope)
        # Application Auto Scaling creates this role: its user guide, "Service-linked roles".
        role = iam.Role.from_role_arn(
            scope,
            f"{construct_id}Role",
            f"arn:{stack.partition}:iam::{stack.account}:role/aws-service-role/"
            "ecs.application-autoscaling.amazonaws.com/"
            "AWSServiceRoleForApplicationAutoScaling_ECSService",
            mutable=False,
        )
        super().__init__(
            scope,
            construct_id,
            service_namespace=autoscaling.ServiceNamespace.ECS,
            resource_id=f"service/{cluster_name}/{service_name}",
            scalable_dimension="ecs:service:DesiredCount",
            min_capacity=minimum,
            max_capacity=maximum,
            role=role,
        )

    def follow_processors(self, percent: int) -> None:
        """Keep the average use of the processors.

        percent: Use to keep, in percent of the size of a task, 1 to 100.
        """
        self.scale_to_track_metric(
            "Processors",
            predefined_metric=autoscaling.PredefinedMetric.ECS_SERVICE_AVERAGE_CPU_UTILIZATION,
            target_value=percent,
            scale_in_cooldown=cdk.Duration.seconds(_IN_SECONDS),
            scale_out_cooldown=cdk.Duration.seconds(_OUT_SECONDS),
        )
