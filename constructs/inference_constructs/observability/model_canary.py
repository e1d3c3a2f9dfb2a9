"""A function in the VPC that asks every model on a schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_catalog.log_groups import canary_log_group
from inference_constructs.code_staging import function_code
from inference_constructs.function_calls import not_repeated
from inference_constructs.network.function_interfaces import let_connect
from inference_constructs.network.model_load_balancer import Gateway
from inference_constructs.observability.alarm_topic import tell
from inference_constructs.observability.kept_log_group import KeptLogGroup
from inference_contracts import canary_names, platform_keys
from inference_runtime import runtime_directory

if TYPE_CHECKING:  # only platforms with a front door need its services
    from inference_constructs.front_door import PlatformKeySecret

#: One lost answer may be a pod that moves.
_ROUNDS: Final = 2


class CanaryAlarms(Construct):
    """One alarm per model. It is also raised if the canary does not report.

    Parameters
    ----------
    platform
        `metadata.name`.
    models
        Names of the models.
    every_minutes
        Minutes between two rounds of the canary.
    runbook
        What to do, as a path or a URL.
    alarm_topic
        Topic that is told of alarms and of their end. None if nobody is told.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        models: Sequence[str],
        every_minutes: int,
        runbook: str,
        alarm_topic: sns.ITopic | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._alarms: list[cloudwatch.IAlarm] = []
        for model in models:
            alarm = cloudwatch.Alarm(
                self,
                model,
                alarm_description=f"{model} did not answer {_ROUNDS} questions in turn. Runbook: {runbook}",
                comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
                evaluation_periods=_ROUNDS,
                metric=_answers(platform, model, every_minutes),
                threshold=1,
                treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
            )
            tell(alarm, alarm_topic)
            self._alarms.append(alarm)

    @property
    def alarms(self) -> Sequence[cloudwatch.IAlarm]:
        """The alarms."""
        return self._alarms


def _answers(platform: str, model: str, every_minutes: int) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=canary_names.METRIC_NAMESPACE,
        metric_name=canary_names.ANSWERED,
        dimensions_map={
            canary_names.PLATFORM_DIMENSION: platform,
            canary_names.MODEL_DIMENSION: model,
        },
        statistic="Minimum",
        period=cdk.Duration.minutes(every_minutes),
    )


class ModelCanary(Construct):
    """A Lambda function behind a schedule, which may write its log, and read its key for the front door.

    It is not a canary of CloudWatch Synthetics: that needs a bucket for artefacts, and aws-cdk-lib knows
    only older runtimes of it for Python.

    Parameters
    ----------
    platform
        `metadata.name`.
    models
        Name, address and task of each model, as ``canary.model_questions`` reads them.
    vpc, gateway
        Network of the models, and their load balancer.
    encryption_key
        KMS key of the log.
    keys
        Secret with its key for the front door, through which it then asks. None without a front door.
    every_minutes
        Minutes between two rounds.
    retention_days
        Days for which the log is kept.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        models: Sequence[Mapping[str, str]],
        vpc: ec2.IVpc,
        gateway: Gateway,
        encryption_key: kms.IKey,
        keys: PlatformKeySecret | None = None,
        every_minutes: int = 5,
        retention_days: int = 90,
    ) -> None:
        super().__init__(scope, construct_id)
        log = KeptLogGroup(
            self,
            "Log",
            name=canary_log_group(platform),
            retention_days=retention_days,
            encryption_key=encryption_key,
        )
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        let_connect(role)
        log.grant_write(role)
        group = ec2.SecurityGroup(
            self, "Group", vpc=vpc, allow_all_outbound=False, description="From the canary to the models"
        )
        balancer = ec2.SecurityGroup.from_security_group_id(self, "Models", gateway.security_group_id)
        group.connections.allow_to(balancer, ec2.Port.tcp(gateway.port), "Models")
        if keys:
            group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "AWS")
            keys.grant_read(role)
        function = lambda_.Function(
            self,
            "Ask",
            architecture=lambda_.Architecture.ARM_64,
            code=function_code(runtime_directory() / "canary"),
            environment={
                canary_names.PLATFORM_VARIABLE: platform,
                canary_names.MODELS_VARIABLE: json.dumps(list(models)),
                **({platform_keys.SECRET_VARIABLE: keys.arn} if keys else {}),
            },
            handler="canary.model_questions.handle",
            log_group=log,
            memory_size=canary_names.MEMORY_MIB,
            reserved_concurrent_executions=canary_names.CANARY_CALLS["canary"],
            role=role,
            runtime=lambda_.Runtime.PYTHON_3_14,
            security_groups=[group],
            timeout=cdk.Duration.minutes(15),
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=vpc.private_subnets),
            **not_repeated(),
        )
        function.node.add_dependency(role)
        events.Rule(
            self,
            "Schedule",
            schedule=events.Schedule.rate(cdk.Duration.minutes(every_minutes)),
            # A round that is missed is not repeated: the next one follows.
            targets=[targets.LambdaFunction(function, retry_attempts=0)],
        )
