"""The workers of one model's batch queues, on AWS Fargate."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from inference_blueprints.catalog import batch_workers
from inference_constructs.batch.model_worker import WILDCARDS, ModelWorker, WorkerCount
from inference_constructs.ecs.backlog_scaling import scale_on_backlog
from inference_constructs.ecs.worker_cluster import WorkerCluster
from inference_constructs.findings import acknowledge, acknowledge_wildcards

#: What Fargate waits for at most between SIGTERM and SIGKILL (Amazon ECS API, ContainerDefinition).
_STOP_SECONDS = 120
#: Of it for requests in flight; the rest is for their commit and for giving shards back.
_DRAIN_SECONDS = 90
_STATUS_FILE = "/tmp/status"  # noqa: S108 - of the container, whose only process writes it


class WorkerService(Construct):
    """A service of tasks without a public address, their log and their rights.

    Parameters
    ----------
    cluster
        Where they run.
    repository, tag
        Their image.
    worker
        What one of them is.
    count
        How many there are.
    spot_percent
        Percent of the tasks on Fargate Spot, beside one that never is.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: WorkerCluster,
        repository: ecr.IRepository,
        tag: str,
        worker: ModelWorker,
        count: WorkerCount,
        spot_percent: int,
    ) -> None:
        super().__init__(scope, construct_id)
        self._worker = worker
        self._log = logs.LogGroup(
            self,
            "Log",
            removal_policy=cdk.RemovalPolicy.DESTROY,
            retention=logs.RetentionDays.THREE_MONTHS,
        )
        execution_role = self._execution_role(repository)
        #: The tasks, as ECS keeps them.
        self.service = ecs.FargateService(
            self,
            "Service",
            cluster=cluster,
            task_definition=self._task_definition(repository, tag, execution_role),
            assign_public_ip=False,
            capacity_provider_strategies=_strategies(spot_percent),
            circuit_breaker=ecs.DeploymentCircuitBreaker(enable=True, rollback=True),
            # Where it follows the queue, nobody else says how many there are.
            desired_count=None if count.follows_the_queue else count.most,
            max_healthy_percent=batch_workers.TASKS_WHILE_REPLACED * 100,
            min_healthy_percent=50,
            propagate_tags=ecs.PropagatedTagSource.SERVICE,
            security_groups=[cluster.security_group],
            vpc_subnets=cluster.subnets,
        )
        # Its right to pull comes before it does, and the cluster knows Spot before it asks for that.
        self.service.node.add_dependency(execution_role, cluster)
        if count.follows_the_queue:
            scale_on_backlog(self.service, worker.queue, count)

    def _task_definition(
        self, repository: ecr.IRepository, tag: str, execution_role: iam.Role
    ) -> ecs.FargateTaskDefinition:
        """Describe one task."""
        definition = ecs.FargateTaskDefinition(
            self,
            "Task",
            cpu=batch_workers.TASK_VCPU * 1024,
            memory_limit_mib=batch_workers.TASK_MEMORY_GIB * 1024,
            execution_role=execution_role.without_policy_updates(),
            runtime_platform=ecs.RuntimePlatform(
                cpu_architecture=ecs.CpuArchitecture.X86_64,
                operating_system_family=ecs.OperatingSystemFamily.LINUX,
            ),
            task_role=self._task_role(),
            volumes=[ecs.Volume(name="temporary")],
        )
        container = definition.add_container(
            "main",
            image=ecs.ContainerImage.from_ecr_repository(repository, tag),
            command=["python3", "-m", "batch.worker"],
            environment={
                **self._worker.environment,
                "BATCH_DRAIN_SECONDS": str(_DRAIN_SECONDS),
                "BATCH_STATUS_FILE": _STATUS_FILE,
            },
            # The file is written every 5 s while the process is well.
            health_check=ecs.HealthCheck(
                command=["CMD-SHELL", f'test -n "$(find {_STATUS_FILE} -newermt "-60 seconds")"'],
                interval=cdk.Duration.seconds(30),
                retries=3,
                start_period=cdk.Duration.seconds(30),
            ),
            logging=ecs.LogDrivers.aws_logs(stream_prefix=self._worker.model, log_group=self._log),
            linux_parameters=self._without_capabilities(),
            readonly_root_filesystem=True,
            stop_timeout=cdk.Duration.seconds(_STOP_SECONDS),
            user="1000:1000",
        )
        container.add_mount_points(
            ecs.MountPoint(container_path="/tmp", read_only=False, source_volume="temporary")  # noqa: S108
        )
        acknowledge(definition, {"ECS2": "Names and addresses; nothing of them is a secret."})
        return definition

    def _without_capabilities(self) -> ecs.LinuxParameters:
        """Take every capability of the kernel away."""
        parameters = ecs.LinuxParameters(self, "Linux", init_process_enabled=False)
        parameters.drop_capabilities(ecs.Capability.ALL)
        return parameters

    def _task_role(self) -> iam.IRole:
        """Let the worker do what it does anywhere."""
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
        for statement in self._worker.statements:
            role.add_to_policy(iam.PolicyStatement.from_json(dict(statement)))
        acknowledge_wildcards(role, self._worker.statements, WILDCARDS)
        return role

    def _execution_role(self, repository: ecr.IRepository) -> iam.Role:
        """Let ECS pull this very image and write this very log."""
        role = iam.Role(self, "ExecutionRole", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
        statements = [
            iam.PolicyStatement(actions=["ecr:GetAuthorizationToken"], resources=["*"]),
            iam.PolicyStatement(
                actions=[
                    "ecr:BatchCheckLayerAvailability",
                    "ecr:BatchGetImage",
                    "ecr:GetDownloadUrlForLayer",
                ],
                resources=[repository.repository_arn],
            ),
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[self._log.log_group_arn]
            ),
        ]
        for statement in statements:
            role.add_to_policy(statement)
        acknowledge_wildcards(
            role,
            [each.to_statement_json() for each in statements],
            "The token of a registry is of no resource (Amazon ECR API Reference); a log has streams.",
        )
        return role


def _strategies(spot_percent: int) -> list[ecs.CapacityProviderStrategy]:
    """Return one task that is never Spot, and a share of the others that is."""
    on_demand = ecs.CapacityProviderStrategy(capacity_provider="FARGATE", base=1, weight=100 - spot_percent)
    if not spot_percent:
        return [on_demand]
    return [on_demand, ecs.CapacityProviderStrategy(capacity_provider="FARGATE_SPOT", weight=spot_percent)]
