"""What all controllers of a cell share: table, freeze switch, topic, network and queue of lost events."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from inference_constructs.function_calls import undelivered_events
from inference_constructs.operations.controlled_cluster import ControlledCluster
from inference_constructs.storage.tables import text_attribute
from inference_contracts import operations_names


class ControllerPlace(Construct):
    """The resources that all controllers of a cell share.

    Parameters
    ----------
    platform
        `metadata.name`.
    cluster
        The cluster.
    vpc
        VPC in whose private subnets the functions run.
    encryption_key
        KMS key of the table and of the logs.
    alarm_topic
        Topic that tells people.
    cell
        The cell: one cluster of the platform.
    retention_days
        Days for which logs are kept.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        cluster: ControlledCluster,
        vpc: ec2.IVpc,
        encryption_key: kms.IKey,
        alarm_topic: sns.ITopic,
        cell: str = operations_names.MAIN_CELL,
        retention_days: int = 90,
    ) -> None:
        super().__init__(scope, construct_id)
        self.platform, self.cell, self.cluster, self.vpc = platform, cell, cluster, vpc
        self.encryption_key, self.retention_days, self.alarm_topic = (
            encryption_key,
            retention_days,
            alarm_topic,
        )
        self.table = ControllerTable(self, "Table", encryption_key=encryption_key)
        self.frozen = self._add_freeze_switch()
        self.undelivered = undelivered_events(self, "Undelivered")
        self.security_group = ec2.SecurityGroup(
            self, "Group", vpc=vpc, allow_all_outbound=False, description="Controllers of the platform"
        )
        cluster.connect(self, self.security_group)

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of every controller."""
        return {
            operations_names.PLATFORM: self.platform,
            operations_names.CELL: self.cell,
            operations_names.TABLE: self.table.table_name,
            operations_names.FREEZE_PARAMETER: operations_names.freeze_parameter(self.platform, self.cell),
            operations_names.TOPIC_ARN: self.alarm_topic.topic_arn,
            **self.cluster.environment,
        }

    def metric(self, name: str, service: str, *, statistic: str) -> cloudwatch.Metric:
        """Return a metric that a controller writes, with a value per minute.

        Parameters
        ----------
        name
            Its name, in `operations_names` or the names of the controller.
        service
            The controller, such as `operations_names.HEALTH_SERVICE`.
        statistic
            Such as ``Sum``.
        """
        values = (self.platform, self.cell, service)
        return cloudwatch.Metric(
            namespace=operations_names.METRIC_NAMESPACE,
            metric_name=name,
            dimensions_map=dict(zip(operations_names.METRIC_DIMENSIONS, values, strict=True)),
            period=cdk.Duration.minutes(1),
            statistic=statistic,
        )

    def _add_freeze_switch(self) -> ssm.StringParameter:
        """Add the freeze switch. An update of the stack leaves the value that people set.

        This holds only while no property of the parameter changes, its tags included: CloudFormation writes
        the whole parameter (aws-cloudformation-resource-providers-ssm, UpdateHandler.java).
        """
        values = "|".join(operations_names.FREEZE_VALUES)
        return ssm.StringParameter(
            self,
            "Frozen",
            parameter_name=operations_names.freeze_parameter(self.platform, self.cell),
            string_value=operations_names.FREEZE_VALUES[0],
            allowed_pattern=f"^({values})$",
            description="Which controllers may not act.",
        )


class ControllerTable(dynamodb.TableV2):
    """One item per case, place, state and audit record. Records expire by themselves.

    encryption_key: KMS key of every item.
    """

    def __init__(self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey) -> None:
        super().__init__(
            scope,
            construct_id,
            partition_key=text_attribute(operations_names.SCOPE_ATTRIBUTE),
            sort_key=text_attribute(operations_names.ENTRY_ATTRIBUTE),
            billing=dynamodb.Billing.on_demand(),
            encryption=dynamodb.TableEncryptionV2.customer_managed_key(encryption_key),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # A controller without its table starts again: the nodes carry the state of every replacement.
            removal_policy=cdk.RemovalPolicy.DESTROY,
            time_to_live_attribute=operations_names.EXPIRY_ATTRIBUTE,
        )
