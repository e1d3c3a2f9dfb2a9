"""What all controllers of a cell share: table, freeze switch, topic, network and queue of lost events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from inference_constructs.operations.controlled_cluster import ControlledCluster, EcsControlledCluster
from inference_constructs.operations.controller_table import ControllerTable
from inference_constructs.undelivered_events import undelivered_events
from inference_contracts import operations_names

_HTTPS: Final = 443


class ControllerPlace(Construct):
    """The resources that all controllers of a cell share.

    Parameters
    ----------
    platform
        `metadata.name`.
    cell
        The cell: one cluster of the platform.
    cluster
        The cluster.
    vpc
        VPC in whose private subnets the functions run.
    encryption_key
        KMS key of the table and of the logs.
    retention_days
        Days for which logs are kept.
    topic
        Topic that tells people.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        cell: str,
        cluster: ControlledCluster | EcsControlledCluster,
        vpc: ec2.IVpc,
        encryption_key: kms.IKey,
        retention_days: int,
        topic: sns.ITopic,
    ) -> None:
        super().__init__(scope, construct_id)
        self.platform, self.cell, self.cluster, self.vpc = platform, cell, cluster, vpc
        self.encryption_key, self.retention_days, self.topic = encryption_key, retention_days, topic
        self.table = ControllerTable(self, "Table", encryption_key=encryption_key)
        self.frozen = self._add_freeze_switch()
        self.undelivered = undelivered_events(self, "Undelivered")
        self.security_group = self._add_security_group()

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of every controller."""
        return {
            operations_names.PLATFORM: self.platform,
            operations_names.CELL: self.cell,
            operations_names.TABLE: self.table.table_name,
            operations_names.FREEZE_PARAMETER: operations_names.freeze_parameter(self.platform, self.cell),
            operations_names.TOPIC_ARN: self.topic.topic_arn,
            **self._of_cluster(),
        }

    def _of_cluster(self) -> Mapping[str, str]:
        """Return the variables by which controllers know their cluster."""
        if isinstance(self.cluster, EcsControlledCluster):
            return {operations_names.ECS_CLUSTER: self.cluster.name}
        return {
            operations_names.CLUSTER: self.cluster.name,
            operations_names.CLUSTER_ENDPOINT: self.cluster.endpoint,
            operations_names.CLUSTER_AUTHORITY: self.cluster.authority,
        }

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

    def _add_security_group(self) -> ec2.SecurityGroup:
        """Let the functions reach AWS's services, and on EKS the control plane, by HTTPS."""
        group = ec2.SecurityGroup(
            self, "Group", vpc=self.vpc, allow_all_outbound=False, description="Controllers of the platform"
        )
        # Services are reached through endpoints of the VPC or a NAT gateway; some have public addresses.
        anywhere, https = ec2.Peer.any_ipv4(), ec2.Port.tcp(_HTTPS)
        if isinstance(self.cluster, EcsControlledCluster):
            group.add_egress_rule(anywhere, https, "AWS")
            return group
        group.add_egress_rule(anywhere, https, "Kubernetes and AWS")
        ec2.CfnSecurityGroupIngress(
            self,
            "ControlPlaneIngress",
            description="Kubernetes API, from the controllers",
            from_port=_HTTPS,
            to_port=_HTTPS,
            group_id=self.cluster.security_group_id,
            ip_protocol="tcp",
            source_security_group_id=group.security_group_id,
        )
        return group
