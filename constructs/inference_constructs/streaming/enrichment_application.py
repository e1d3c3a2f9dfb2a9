"""A streaming job as an application on Managed Service for Apache Flink.

It uses CloudFormation's resources directly: CDK's construct,
``aws-cdk.aws-kinesisanalytics-flink-alpha``, may change in any release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesisanalyticsv2 as flink
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from inference_catalog.log_groups import flink_log_group
from inference_constructs.findings import acknowledge_wildcards
from inference_constructs.observability.kept_log_group import KeptLogGroup
from inference_constructs.signals.signal_access import SignalAccess
from inference_constructs.streaming.event_cluster import JobEvents
from inference_constructs.streaming.streaming_store import StreamingStore
from inference_contracts.streaming_job import ADDRESS_PROPERTY, PROPERTY_GROUP

if TYPE_CHECKING:  # jobs without a front door need not import the services that it uses
    from inference_constructs.front_door import PlatformKeySecret

#: https://docs.aws.amazon.com/managed-flink/latest/java/release-version-list.html
_RUNTIME: Final = "FLINK-2_3"
#: AWS's default. A restart repeats at most the calls since the last checkpoint.
_CHECKPOINT_MILLISECONDS: Final = 60_000
_PAUSE_MILLISECONDS: Final = 5_000
_LOG_STREAM: Final = "job"


@dataclass(frozen=True)
class ApplicationSize:
    """Size of an application."""

    parallelism: int
    """Subtasks at the start. Autoscaling changes the number while the job runs."""
    parallelism_per_kpu: int
    """Subtasks per Kinesis Processing Unit (one vCPU and 4 GiB)."""


class EnrichmentApplication(Construct):
    """The application, its role, its log, and its place in the VPC.

    Snapshots are on: each change of program, configuration or size restarts the job from a snapshot. If the
    changed job does not run, the service goes back to the former version
    (https://docs.aws.amazon.com/managed-flink/latest/java/how-system-rollbacks.html).

    Parameters
    ----------
    name
        Name of the application.
    job
        Name of the job.
    program_key
        Key of the program in the store.
    document
        Address of the job's configuration.
    size
        Size at the start.
    events
        Its topics.
    signals
        Access to the signal store.
    store
        Bucket of program, configuration and history.
    role_path
        IAM path of the role.
    vpc
        VPC whose private subnets the job runs in.
    security_group
        Security group of the job.
    encryption_key
        KMS key of the log.
    retention_days
        Days for which the log is kept.
    key_secret
        The job's key for a front door; None without one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        job: str,
        program_key: str,
        document: str,
        size: ApplicationSize,
        events: JobEvents,
        signals: SignalAccess,
        store: StreamingStore,
        role_path: str,
        vpc: ec2.IVpc,
        security_group: ec2.ISecurityGroup,
        encryption_key: kms.IKey,
        retention_days: int,
        key_secret: PlatformKeySecret | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._name, self._vpc, self._group = name, vpc, security_group
        role = self._add_role(role_path)
        store.grant_program(role)
        store.grant_document(role, job)
        store.grant_history(role, job)
        signals.grant_stream(role, job)
        events.grant_job(role)
        if key_secret:
            key_secret.grant_read(role)
        log = KeptLogGroup(
            self,
            "Log",
            name=flink_log_group(name),
            retention_days=retention_days,
            encryption_key=encryption_key,
        )
        stream = logs.LogStream(
            self,
            "LogStream",
            log_group=log,
            log_stream_name=_LOG_STREAM,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        stream_arn = self._stream_arn()
        self._let_log(role, stream_arn)
        #: The application.
        self.application = flink.CfnApplication(
            self,
            "Application",
            application_configuration=self._configuration(program_key, document, size, store),
            application_name=name,
            runtime_environment=_RUNTIME,
            service_execution_role=role.role_arn,
        )
        # The service reads the program with the role when the application is created.
        self.application.node.add_dependency(role)
        #: The connection of the application to its log.
        self.logging = flink.CfnApplicationCloudWatchLoggingOption(
            self,
            "Logging",
            application_name=self.application.ref,
            cloud_watch_logging_option=flink.CfnApplicationCloudWatchLoggingOption.CloudWatchLoggingOptionProperty(
                log_stream_arn=stream_arn
            ),
        )
        self.logging.node.add_dependency(stream)

    def _configuration(
        self, program_key: str, document: str, size: ApplicationSize, store: StreamingStore
    ) -> flink.CfnApplication.ApplicationConfigurationProperty:
        kinds = flink.CfnApplication
        return kinds.ApplicationConfigurationProperty(
            application_code_configuration=kinds.ApplicationCodeConfigurationProperty(
                code_content=kinds.CodeContentProperty(
                    s3_content_location=kinds.S3ContentLocationProperty(
                        bucket_arn=store.bucket_arn, file_key=program_key
                    )
                ),
                # Jars too are "ZIPFILE".
                code_content_type="ZIPFILE",
            ),
            application_snapshot_configuration=kinds.ApplicationSnapshotConfigurationProperty(
                snapshots_enabled=True
            ),
            application_system_rollback_configuration=kinds.ApplicationSystemRollbackConfigurationProperty(
                rollback_enabled=True
            ),
            environment_properties=kinds.EnvironmentPropertiesProperty(
                property_groups=[
                    kinds.PropertyGroupProperty(
                        property_group_id=PROPERTY_GROUP, property_map={ADDRESS_PROPERTY: document}
                    )
                ]
            ),
            flink_application_configuration=kinds.FlinkApplicationConfigurationProperty(
                checkpoint_configuration=kinds.CheckpointConfigurationProperty(
                    configuration_type="CUSTOM",
                    checkpointing_enabled=True,
                    checkpoint_interval=_CHECKPOINT_MILLISECONDS,
                    min_pause_between_checkpoints=_PAUSE_MILLISECONDS,
                ),
                monitoring_configuration=kinds.MonitoringConfigurationProperty(
                    configuration_type="CUSTOM", log_level="INFO", metrics_level="APPLICATION"
                ),
                parallelism_configuration=kinds.ParallelismConfigurationProperty(
                    configuration_type="CUSTOM",
                    auto_scaling_enabled=True,
                    parallelism=size.parallelism,
                    parallelism_per_kpu=size.parallelism_per_kpu,
                ),
            ),
            vpc_configurations=[
                kinds.VpcConfigurationProperty(
                    security_group_ids=[self._group.security_group_id],
                    subnet_ids=[subnet.subnet_id for subnet in self._vpc.private_subnets],
                )
            ],
        )

    def _add_role(self, path: str) -> iam.Role:
        """Add the role. Only this application can make the service take it."""
        stack = cdk.Stack.of(self)
        # https://docs.aws.amazon.com/managed-flink/latest/java/iam-cross-service-confused-deputy-prevention.html
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "kinesisanalytics.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "ArnEquals": {
                        "aws:SourceArn": stack.format_arn(
                            service="kinesisanalytics", resource="application", resource_name=self._name
                        )
                    },
                },
            ),
            path=path,
        )
        statements = self._interface_statements()
        for statement in statements:
            role.add_to_policy(statement)
        acknowledge_wildcards(
            role,
            [each.to_statement_json() for each in statements],
            "The service names the network interfaces; EC2's lists know no resources.",
        )
        return role

    def _interface_statements(self) -> list[iam.PolicyStatement]:
        """Let the service connect the application to the VPC, within these subnets.

        AWS's policy allows the actions on all resources
        (https://docs.aws.amazon.com/managed-flink/latest/java/vpc-permissions.html). What the actions check
        is in https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html.
        """
        stack = cdk.Stack.of(self)

        def arn(kind: str, name: str) -> str:
            return stack.format_arn(service="ec2", resource=kind, resource_name=name)

        return [
            iam.PolicyStatement(
                actions=[
                    "ec2:DescribeDhcpOptions",
                    "ec2:DescribeNetworkInterfaces",
                    "ec2:DescribeSecurityGroups",
                    "ec2:DescribeSubnets",
                    "ec2:DescribeVpcs",
                ],
                conditions={"StringEquals": {"aws:RequestedRegion": stack.region}},
                resources=["*"],
            ),
            iam.PolicyStatement(
                actions=["ec2:CreateNetworkInterface"],
                resources=[
                    arn("network-interface", "*"),
                    arn("security-group", self._group.security_group_id),
                    *(arn("subnet", subnet.subnet_id) for subnet in self._vpc.private_subnets),
                ],
            ),
            iam.PolicyStatement(
                actions=["ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface"],
                conditions={"ArnEquals": {"ec2:Vpc": arn("vpc", self._vpc.vpc_id)}},
                resources=[arn("network-interface", "*")],
            ),
        ]

    def _stream_arn(self) -> str:
        return cdk.Stack.of(self).format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"{flink_log_group(self._name)}:log-stream:{_LOG_STREAM}",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )

    def _let_log(self, role: iam.Role, stream_arn: str) -> None:
        """Let the application find and write its log.

        https://docs.aws.amazon.com/managed-flink/latest/java/cloudwatch-logs.html
        """
        stack = cdk.Stack.of(self)
        finds = iam.PolicyStatement(
            actions=["logs:DescribeLogGroups", "logs:DescribeLogStreams"],
            resources=[
                stack.format_arn(
                    service="logs",
                    resource="log-group",
                    resource_name="*",
                    arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
                )
            ],
        )
        role.add_to_policy(finds)
        acknowledge_wildcards(role, [finds.to_statement_json()], "Lists of log groups know no single one.")
        role.add_to_policy(iam.PolicyStatement(actions=["logs:PutLogEvents"], resources=[stream_arn]))
