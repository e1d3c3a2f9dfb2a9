"""One member of the discovery store: a service of one Fargate task, with a name and a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_efs as efs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_servicediscovery as servicediscovery
from constructs import Construct

from inference_catalog.ecs_images import etcd_image, shell_image
from inference_constructs.ecs.task_roles import fargate_task
from inference_constructs.findings import acknowledge, acknowledge_grants
from inference_constructs.observability.kept_log_group import short_log
from inference_contracts.discovery_store import (
    DISCOVERY_LIVENESS_PATH,
    DISCOVERY_LIVENESS_PORT,
    MEMBER_FILES,
    member_arguments,
)

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


_CPU, _MEMORY_MIB = 512, 1024
_DATA, _CERTIFICATES = PurePosixPath("/data"), PurePosixPath("/certificates")
#: etcd hands over the leadership when it is asked to end.
_STOP_SECONDS = 60
#: Clients ask for a member's address again after this time.
_NAME_SECONDS = 5
_LOG_BUFFER_MIB = 25


@dataclass(frozen=True, slots=True)
class MemberPlace:
    """Where the members of a store run."""

    cluster: ecs.ICluster
    """Cluster of the services."""
    namespace: servicediscovery.INamespace
    """Private zone of their names."""
    security_group: ec2.ISecurityGroup
    """Security group of the members."""


class DiscoveryMember(Construct):
    """A service that never runs two tasks: two processes must not use the same data.

    Parameters
    ----------
    place
        Where it runs.
    hosts, index
        Names of all members, and the position of this one.
    subnet
        Its subnet, in a zone of its own.
    files
        File system of all members.
    certificates
        Secret with the values ``ca``, ``cert`` and ``key``.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: MemberPlace,
        hosts: Sequence[str],
        index: int,
        subnet: ec2.ISubnet,
        files: DiscoveryFiles,
        certificates: secretsmanager.ISecret,
    ) -> None:
        super().__init__(scope, construct_id)
        self._log = short_log(self, "Log")
        self._roles = [
            iam.Role(self, name, assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
            for name in ("Role", "ExecutionRole")
        ]
        folder = files.add_folder(f"member-{index}")
        definition = self._definition(files, folder, certificates)
        self._add_containers(definition, hosts, index, certificates)
        self.service = ecs.FargateService(
            self,
            "Service",
            cluster=place.cluster,
            task_definition=definition,
            assign_public_ip=False,
            availability_zone_rebalancing=ecs.AvailabilityZoneRebalancing.DISABLED,
            circuit_breaker=ecs.DeploymentCircuitBreaker(enable=True, rollback=True),
            cloud_map_options=ecs.CloudMapOptions(
                cloud_map_namespace=place.namespace,
                dns_record_type=servicediscovery.DnsRecordType.A,
                dns_ttl=cdk.Duration.seconds(_NAME_SECONDS),
                name=hosts[index].partition(".")[0],
            ),
            desired_count=1,
            min_healthy_percent=0,
            max_healthy_percent=100,
            propagate_tags=ecs.PropagatedTagSource.SERVICE,
            security_groups=[place.security_group],
            vpc_subnets=ec2.SubnetSelection(subnets=[subnet]),
        )
        # Without mount targets, or without the permissions, the first task would fail.
        self.service.node.add_dependency(files.mount_targets_available, *self._roles)

    def _definition(
        self, files: DiscoveryFiles, folder: efs.IAccessPoint, certificates: secretsmanager.ISecret
    ) -> ecs.FargateTaskDefinition:
        task_role, execution_role = self._roles
        files.grant_mount(task_role, folder)
        grants = [certificates.grant_read(execution_role), self._log.grant_write(execution_role)]
        acknowledge_grants(execution_role, grants, "ECS names log streams after tasks.")
        definition = fargate_task(
            self,
            cpu=_CPU,
            memory_mib=_MEMORY_MIB,
            execution_role=execution_role,
            task_role=task_role.without_policy_updates(),
            volumes=[
                ecs.Volume(name="certificates"),
                ecs.Volume(
                    name="data",
                    efs_volume_configuration=ecs.EfsVolumeConfiguration(
                        file_system_id=files.file_system_id,
                        transit_encryption="ENABLED",
                        authorization_config=ecs.AuthorizationConfig(
                            access_point_id=folder.access_point_id, iam="ENABLED"
                        ),
                    ),
                ),
            ],
        )
        acknowledge(definition, {"ECS2": "The variables contain names of files, but no secrets."})
        return definition

    def _add_containers(
        self,
        definition: ecs.FargateTaskDefinition,
        hosts: Sequence[str],
        index: int,
        certificates: secretsmanager.ISecret,
    ) -> None:
        """Add etcd, before it a container that writes its certificates, and beside it one that watches it.

        etcd's image has no shell and no client for HTTP. Its own client asks for an answer of the majority,
        which the first member of a new store cannot have.
        """
        # The volume belongs to root. Only containers of this task see it.
        writes = " && ".join(
            f'printf "%s\\n" "${key.upper()}" >{_CERTIFICATES / name}' for key, name in MEMBER_FILES.items()
        )
        files = self._add(
            definition,
            "files",
            image=shell_image(),
            command=["sh", "-c", f"umask 022 && {writes}"],
            essential=False,
            secrets={key.upper(): ecs.Secret.from_secrets_manager(certificates, key) for key in MEMBER_FILES},
            user="0:0",
        )
        files.add_mount_points(_mount("certificates", _CERTIFICATES))
        member = self._add(
            definition,
            "main",
            image=etcd_image(),
            command=[
                "/usr/local/bin/etcd",
                *member_arguments(hosts, index, data=_DATA / "etcd", certificates=_CERTIFICATES),
            ],
        )
        member.add_mount_points(_mount("certificates", _CERTIFICATES, read_only=True), _mount("data", _DATA))
        member.add_container_dependencies(
            ecs.ContainerDependency(container=files, condition=ecs.ContainerDependencyCondition.SUCCESS)
        )
        page = f"http://127.0.0.1:{DISCOVERY_LIVENESS_PORT}{DISCOVERY_LIVENESS_PATH}"
        self._add(
            definition,
            "watch",
            image=shell_image(),
            command=["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 5; done"],
            health_check=ecs.HealthCheck(
                command=["CMD", "wget", "-q", "-T", "4", "-O", "/dev/null", page],
                interval=cdk.Duration.seconds(10),
                timeout=cdk.Duration.seconds(5),
                retries=6,
                start_period=cdk.Duration.seconds(60),
            ),
        ).add_container_dependencies(
            ecs.ContainerDependency(container=member, condition=ecs.ContainerDependencyCondition.START)
        )

    def _add(
        self,
        definition: ecs.FargateTaskDefinition,
        name: str,
        *,
        image: str,
        command: Sequence[str],
        essential: bool = True,
        health_check: ecs.HealthCheck | None = None,
        secrets: Mapping[str, ecs.Secret] | None = None,
        user: str = f"{DISCOVERY_USER}:{DISCOVERY_USER}",
    ) -> ecs.ContainerDefinition:
        parameters = ecs.LinuxParameters(self, f"Linux{name.capitalize()}", init_process_enabled=False)
        parameters.drop_capabilities(ecs.Capability.ALL)
        return definition.add_container(
            name,
            container_name=name,
            image=ecs.ContainerImage.from_registry(image),
            # Both images have programs of their own as entry point.
            entry_point=[command[0]],
            command=list(command[1:]),
            essential=essential,
            health_check=health_check,
            linux_parameters=parameters,
            logging=ecs.LogDrivers.aws_logs(
                log_group=self._log,
                max_buffer_size=cdk.Size.mebibytes(_LOG_BUFFER_MIB),
                # A member must not wait for a log.
                mode=ecs.AwsLogDriverMode.NON_BLOCKING,
                stream_prefix="discovery",
            ),
            readonly_root_filesystem=True,
            secrets=secrets,
            stop_timeout=cdk.Duration.seconds(_STOP_SECONDS),
            user=user,
        )


def _mount(volume: str, path: PurePosixPath, *, read_only: bool = False) -> ecs.MountPoint:
    return ecs.MountPoint(container_path=str(path), read_only=read_only, source_volume=volume)
