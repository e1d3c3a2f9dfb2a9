"""A schedule that calls a controller each minute."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as scheduler_targets
from constructs import Construct

from inference_constructs.operations.controller_place import ControllerPlace
from inference_constructs.scheduler_role import scheduler_role


class MinuteSchedule(Construct):
    """An EventBridge schedule. A call that fails is not repeated for long: the next minute does its work.

    Parameters
    ----------
    place
        What the controllers of the cell share.
    function
        The controller.
    says
        What it does.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        function: lambda_.IFunction,
        says: str,
    ) -> None:
        super().__init__(scope, construct_id)
        role = scheduler_role(self, "Role", function=function, undelivered=place.undelivered)
        scheduler.Schedule(
            self,
            "EveryMinute",
            description=says,
            schedule=scheduler.ScheduleExpression.rate(cdk.Duration.minutes(1)),
            target=scheduler_targets.LambdaInvoke(
                function,
                input=scheduler.ScheduleTargetInput.from_object(
                    {"time": scheduler.ContextAttribute.scheduled_time}
                ),
                max_event_age=cdk.Duration.minutes(1),
                retry_attempts=0,
                dead_letter_queue=place.undelivered,
                # CDK's `LambdaInvoke` target would also allow the function's versions.
                role=role.without_policy_updates(),
            ),
        )
