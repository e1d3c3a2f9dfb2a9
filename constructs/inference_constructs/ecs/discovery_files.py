"""Folders of the members of the discovery store, which outlive their tasks."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

#: User of etcd and owner of its files.
DISCOVERY_USER = 1000


class DiscoveryFiles(efs.FileSystem):
    """An encrypted file system, with a folder for each member that no other member can open.

    There is no backup: the data is worth nothing after the leases of its processes. It is kept so that a
    member that starts again ends no lease.

    Parameters
    ----------
    vpc, subnets
        Subnets of the mount targets, one per zone.
    encryption_key
        KMS key of the files.
    clients
        Security group of the members.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        encryption_key: kms.IKey,
        clients: ec2.ISecurityGroup,
    ) -> None:
        access = ec2.SecurityGroup(
            scope, f"{construct_id}Access", vpc=vpc, allow_all_outbound=False, description="Files of members"
        )
        super().__init__(
            scope,
            construct_id,
            allow_anonymous_access=False,
            enable_automatic_backups=False,
            encrypted=True,
            kms_key=encryption_key,
            removal_policy=cdk.RemovalPolicy.DESTROY,
            security_group=access,
            throughput_mode=efs.ThroughputMode.ELASTIC,
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=list(subnets)),
        )
        self.connections.allow_default_port_from(clients, "Members")

    def add_folder(self, name: str) -> efs.AccessPoint:
        """Add a folder. Whoever mounts it sees nothing else, as the same user.

        Parameters
        ----------
        name
            Name of the folder.
        """
        user = str(DISCOVERY_USER)
        return self.add_access_point(
            name,
            path=f"/{name}",
            create_acl=efs.Acl(owner_uid=user, owner_gid=user, permissions="700"),
            posix_user=efs.PosixUser(uid=user, gid=user),
        )

    def grant_mount(self, role: iam.Role, folder: efs.IAccessPoint) -> None:
        """Let a role mount one folder, to read and write it."""
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"],
                resources=[self.file_system_arn],
                conditions={
                    "StringEquals": {"elasticfilesystem:AccessPointArn": folder.access_point_arn},
                },
            )
        )
