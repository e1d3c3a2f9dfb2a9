"""The task that gives each deployment a user and a role of its own in the discovery store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from inference_catalog.ecs_images import ecs_image
from inference_constructs.ecs.task_roles import fargate_task
from inference_constructs.findings import acknowledge, acknowledge_grants
from inference_constructs.observability.kept_log_group import short_log
from inference_contracts.discovery_roles import ADMINISTRATOR, ROUND_SECONDS, STATUS

_CPU, _MEMORY_MIB = 256, 512
_USER = "1000:1000"
_STATUS_FILE = "/tmp/status"  # noqa: S108 - only one process of the container writes to its /tmp
_STOP_SECONDS = 15
#: Three rounds: one that fails is no reason to start again.
_OLDEST_SECONDS = 3 * ROUND_SECONDS + 10


class DiscoveryRoles(Construct):
    """A service of one Fargate task, which is healthy when the store has its users and roles.

    A deployment that adds a model waits for it, so that the model's tasks find their user.

    Parameters
    ----------
    cluster
        Cluster of the service.
    vpc
        VPC whose private subnets hold the task.
    security_group
        Security group of the task.
    command
        Program and arguments.
    environment
        Its variables.
    administrator
        Secret with the values ``ca``, ``cert``, ``key`` and ``password``.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: ecs.ICluster,
        vpc: ec2.IVpc,
        security_group: ec2.ISecurityGroup,
        command: Sequence[str],
        environment: Mapping[str, str],
        administrator: secretsmanager.ISecret,
    ) -> None:
        super().__init__(scope, construct_id)
        log = short_log(self, "Log")
        task_role, execution_role = (
            iam.Role(self, name, assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
            for name in ("Role", "ExecutionRole")
        )
        grants = [administrator.grant_read(execution_role), log.grant_write(execution_role)]
        acknowledge_grants(execution_role, grants, "ECS names log streams after tasks.")
        definition = fargate_task(
            self,
            cpu=_CPU,
            memory_mib=_MEMORY_MIB,
            execution_role=execution_role,
            task_role=task_role,
            volumes=[ecs.Volume(name="temporary")],
        )
        acknowledge(definition, {"ECS2": "The variables contain names and addresses, but no secrets."})
        parameters = ecs.LinuxParameters(self, "Linux", init_process_enabled=False)
        parameters.drop_capabilities(ecs.Capability.ALL)
        age = "time.time() - os.stat(sys.argv[1]).st_mtime"
        fresh = f"import os,sys,time; sys.exit({age} > {_OLDEST_SECONDS})"
        container = definition.add_container(
            "main",
            container_name="main",
            image=ecs.ContainerImage.from_registry(ecs_image("python")),
            entry_point=[command[0]],
            command=list(command[1:]),
            environment={**environment, STATUS: _STATUS_FILE},
            health_check=ecs.HealthCheck(
                command=["CMD", "python3", "-c", fresh, _STATUS_FILE],
                interval=cdk.Duration.seconds(10),
                timeout=cdk.Duration.seconds(5),
                retries=3,
                start_period=cdk.Duration.seconds(120),
            ),
            linux_parameters=parameters,
            logging=ecs.LogDrivers.aws_logs(log_group=log, stream_prefix="discovery-roles"),
            readonly_root_filesystem=True,
            secrets={
                variable: ecs.Secret.from_secrets_manager(administrator, key)
                for key, variable in ADMINISTRATOR.items()
            },
            stop_timeout=cdk.Duration.seconds(_STOP_SECONDS),
            user=_USER,
        )
        container.add_mount_points(
            ecs.MountPoint(container_path="/tmp", read_only=False, source_volume="temporary")  # noqa: S108
        )
        #: The service.
        self.service = ecs.FargateService(
            self,
            "Service",
            cluster=cluster,
            task_definition=definition,
            assign_public_ip=False,
            availability_zone_rebalancing=ecs.AvailabilityZoneRebalancing.DISABLED,
            circuit_breaker=ecs.DeploymentCircuitBreaker(enable=True, rollback=True),
            desired_count=1,
            min_healthy_percent=100,
            max_healthy_percent=200,
            propagate_tags=ecs.PropagatedTagSource.SERVICE,
            security_groups=[security_group],
            vpc_subnets=ec2.SubnetSelection(subnets=vpc.private_subnets),
        )
        self.service.node.add_dependency(execution_role)
