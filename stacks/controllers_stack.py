"""What the stacks of controllers of all targets share: their place, alarms and dashboard."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_blueprints.spec.types import Alarms
from inference_constructs.operations import (
    ControlledCluster,
    ControllerAlarms,
    ControllerPlace,
    EcsControlledCluster,
    HealthController,
    OperationsDashboard,
    ShiftFunction,
)
from inference_contracts import operations_names
from inference_contracts.shift_names import SHIFT_CONTROLLER
from stacks.operations_parts import people_topic


class ControllersStack(cdk.Stack):
    """What the controllers share. A subclass adds them, and then calls `_watch`.

    Parameters
    ----------
    platform
        `metadata.name`.
    cluster
        How controllers reach the cluster.
    alarms
        Who is told. None if nobody is: then the topic has no subscription.
    vpc
        VPC of the functions.
    encryption_key
        KMS key of the table and of the logs.
    retention_days
        Days for which logs are kept.
    env
        Account and region.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        cluster: ControlledCluster | EcsControlledCluster,
        alarms: Alarms | None,
        vpc: ec2.IVpc,
        encryption_key: kms.IKey,
        retention_days: int,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        self._platform = platform
        self._place = ControllerPlace(
            self,
            "Shared",
            platform=platform,
            cell=operations_names.MAIN_CELL,
            cluster=cluster,
            vpc=vpc,
            encryption_key=encryption_key,
            retention_days=retention_days,
            topic=people_topic(self, alarms),
        )

    def _watch(self, health: HealthController | None, shift: ShiftFunction | None) -> None:
        """Add the alarms on the controllers that there are, and the dashboard."""
        functions: dict[str, lambda_.IFunction] = {**health.functions} if health else {}
        if shift is not None:
            functions[SHIFT_CONTROLLER] = shift.function
        watched = ControllerAlarms(self, "Alarms", place=self._place, functions=functions)
        OperationsDashboard(
            self,
            "Dashboard",
            place=self._place,
            alarms=[*watched.alarms, *(health.hardware_alarms if health else [])],
            health=health is not None,
            shift=shift is not None,
        )
