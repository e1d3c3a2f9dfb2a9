"""GPU health: the functions that find broken and slow GPUs and have their nodes replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_catalog.gpu_faults import gpu_faults_file
from inference_constructs.findings import acknowledge_wildcards
from inference_constructs.observability.promql_alarms import AlarmQuery
from inference_constructs.operations.controller_function import (
    ControllerFunction,
    MinuteSchedule,
    controller_code,
    controller_role,
)
from inference_constructs.operations.controller_place import ControllerPlace
from inference_contracts import health_names


class HardwareSignals(Construct):
    """One PromQL alarm per kind of fault, about all nodes. Each node in alarm is a contributor.

    CloudWatch sends an event for each contributor that goes into alarm, with its labels: *Multi Time Series
    Alarm* of https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html.
    So one alarm names any number of nodes. The alarms tell people nothing: the function decides, and tells
    them if they have to act.

    place: What the controllers of the cell share.
    queries: Alarms by kind of fault; `name` is the kind.
    function: Function that takes the events.
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


class HealthController(Construct):
    """A function for events of hardware alarms and one for each minute, with one role and narrow access.

    Parameters
    ----------
    place
        What the controllers of the cell share.
    settings
        What the functions read as ``HEALTH_SETTINGS`` (`inference_contracts.health_names`): whose nodes they
        repair, and how many at once.
    replaces
        Whether the functions may replace nodes. Otherwise they can only read.
    reboots
        Whether they may also reboot nodes.
    queries
        Alarms on hardware by kind of fault.
    reservations
        Whether a pool has reserved capacity, whose spare places they look for.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        settings: Mapping[str, object],
        replaces: bool,
        queries: Sequence[AlarmQuery],
        reservations: bool = False,
        reboots: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        role = controller_role(self, "Role", place)
        self._let_look(role, reservations=reservations)
        place.cluster.grant_health(self, role, replaces=replaces)
        if replaces and reboots:
            self._let_reboot(role, place.cluster.instance_condition)
        code = controller_code("gpu_health", {health_names.FAULTS_FILE: gpu_faults_file().read_text("utf-8")})
        environment = {health_names.HEALTH_SETTINGS: json.dumps(settings)}

        def function(name: str, module: str, timeout_seconds: int) -> ControllerFunction:
            return ControllerFunction(
                self,
                name.capitalize(),
                place=place,
                name=f"health-{name}",
                role=role,
                code=code,
                handler=f"gpu_health.{module}.handle",
                environment=environment,
                timeout_seconds=timeout_seconds,
            )

        self._minute = function("minute", "minute", 55)
        self._events = function("signals", "fault_alarms", 30)
        MinuteSchedule(
            self,
            "Schedule",
            place=place,
            function=self._minute,
            says="Compares workers and continues replacements",
        )
        self._signals = HardwareSignals(self, "Hardware", place=place, queries=queries, function=self._events)

    def _let_look(self, role: iam.Role, *, reservations: bool) -> None:
        """Let the functions see which alarms are raised, and the free places of reservations.

        What the functions may do in the cluster is in `ControlledCluster.grant_health`.
        """
        # A list of alarms is checked against all alarms of the region, also with a prefix of names:
        # https://github.com/aws-samples/amazon-cloudwatch-auto-alarms/issues/1
        lists = iam.PolicyStatement(
            actions=["cloudwatch:DescribeAlarms"],
            resources=[
                cdk.Stack.of(self).format_arn(
                    service="cloudwatch",
                    resource="alarm",
                    resource_name="*",
                    arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
                )
            ],
        )
        # DescribeCapacityReservations has no resource, and no document names one for the contributors.
        looks = iam.PolicyStatement(
            actions=[
                "cloudwatch:DescribeAlarmContributors",
                *(["ec2:DescribeCapacityReservations"] if reservations else []),
            ],
            resources=["*"],
        )
        for each, why in (
            (lists, "A list of alarms is checked against all alarms of the region."),
            (looks, "These actions have no resource."),
        ):
            role.add_to_policy(each)
            acknowledge_wildcards(role, [each.to_statement_json()], why)

    def _let_reboot(self, role: iam.Role, condition: Mapping[str, Mapping[str, str]]) -> None:
        """Let the functions reboot the instances of the cluster, which a tag marks.

        Service Authorization Reference, "Actions, resources, and condition keys for Amazon EC2":
        ``RebootInstances`` has the resource ``instance`` and knows its tags.
        """
        instances = cdk.Stack.of(self).format_arn(service="ec2", resource="instance", resource_name="*")
        reboot = iam.PolicyStatement(
            actions=["ec2:RebootInstances"], conditions=dict(condition), resources=[instances]
        )
        role.add_to_policy(reboot)
        acknowledge_wildcards(
            role,
            [reboot.to_statement_json()],
            "Instances get their names when they start. A tag bounds them.",
        )

    @property
    def functions(self) -> Mapping[str, lambda_.IFunction]:
        """The functions by name."""
        return {"health-minute": self._minute, "health-signals": self._events}

    @property
    def hardware_alarms(self) -> Sequence[cloudwatch.IAlarm]:
        """The alarms on hardware."""
        return self._signals.alarms
