"""Alarms on hardware, and the rule that takes each node in alarm to a function."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_constructs.observability.promql_alarms import AlarmQuery
from inference_constructs.operations.controller_place import ControllerPlace
from inference_contracts import health_names


class HardwareSignals(Construct):
    """One PromQL alarm per kind of fault, about all nodes. Each node in alarm is a contributor.

    CloudWatch sends an event for each contributor that goes into alarm, with its labels: *Multi Time Series
    Alarm* of https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html.
    So one alarm names any number of nodes. The alarms tell people nothing: the function decides, and tells
    them if they have to act.

    Parameters
    ----------
    place
        What the controllers of the cell share.
    queries
        Alarms by kind of fault; `name` is the kind.
    function
        Function that takes the events.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        queries: Sequence[AlarmQuery],
        function: lambda_.IFunction,
    ) -> None:
        super().__init__(scope, construct_id)
        prefix = health_names.hardware_alarm_prefix(place.platform, place.cell)
        self._alarms: list[cloudwatch.IAlarm] = [
            cloudwatch.PromQLAlarm(
                self,
                query.name,
                alarm_description=f"{query.says} Runbook: {query.runbook}",
                # The function reads the kind of fault from the name.
                alarm_name=f"{prefix}{query.name}",
                query=query.query,
                evaluation_interval=cdk.Duration.seconds(query.evaluation_seconds),
                pending_period=cdk.Duration.seconds(query.pending_seconds),
                recovery_period=cdk.Duration.seconds(query.recovery_seconds),
            )
            for query in queries
        ]
        events.Rule(
            self,
            "NodesInAlarm",
            description="Nodes whose hardware is in alarm, to GPU health",
            event_pattern=events.EventPattern(
                source=[health_names.ALARM_EVENT_SOURCE],
                detail_type=[health_names.CONTRIBUTOR_EVENT],
                detail={"alarmName": [{"prefix": prefix}], "state": {"value": ["ALARM"]}},
            ),
            targets=[
                targets.LambdaFunction(
                    function,
                    # Deliveries that fail are tried again for a minute, not for the 24 hours of the default
                    # (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html).
                    # Later, the minute's function has read the raised alarm.
                    retry_attempts=8,
                    max_event_age=cdk.Duration.minutes(1),
                    dead_letter_queue=place.undelivered,
                )
            ],
        )

    @property
    def alarms(self) -> Sequence[cloudwatch.IAlarm]:
        """The alarms."""
        return self._alarms
