"""The workers of one model's batch queues, on AWS Fargate."""

from __future__ import annotations

import math
from itertools import pairwise

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_catalog import ecs_hosts
from inference_constructs.batch.batch_shard_queue import BatchShardQueue
from inference_constructs.batch.model_worker import WILDCARDS, ModelWorker, WorkerCount
from inference_constructs.ecs.serving_service import strategy_nonce
from inference_constructs.ecs.task_roles import fargate_task
from inference_constructs.findings import acknowledge, acknowledge_grants
from inference_constructs.network.model_load_balancer import Gateway
from inference_constructs.observability.kept_log_group import short_log
from inference_contracts import batch_names


class WorkerCluster(ecs.Cluster):
    """A Fargate cluster. Its tasks can reach AWS and the models, and accept no connections.

    Parameters
    ----------
    vpc
        VPC whose private subnets hold the tasks.
    gateway
        The models' load balancer.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        gateway: Gateway,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            vpc=vpc,
            container_insights_v2=ecs.ContainerInsights.ENABLED,
            enable_fargate_capacity_providers=True,
        )
        self.security_group = ec2.SecurityGroup(
            self,
            "Tasks",
            vpc=vpc,
            allow_all_outbound=False,
            description="Batch workers, to AWS and to the models",
        )
        self.security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "AWS")
        self.security_group.add_egress_rule(
            ec2.Peer.security_group_id(gateway.security_group_id), ec2.Port.tcp(gateway.port), "Models"
        )
        self.subnets = ec2.SubnetSelection(subnets=vpc.private_subnets)


#: Longest time that Fargate allows between SIGTERM and SIGKILL (Amazon ECS API, ContainerDefinition).
_STOP_SECONDS = 120
#: Part of this time for requests in flight. The rest is for storing their results and returning shards.
_DRAIN_SECONDS = 90
_STATUS_FILE = "/tmp/status"  # noqa: S108 - only one process of the container writes to its /tmp


class WorkerService(Construct):
    """An ECS service of batch workers without public addresses, with its log and permissions.

    Parameters
    ----------
    cluster
        Cluster of the tasks.
    repository, tag
        Repository and tag of their image.
    worker
        Settings and permissions of one worker.
    count
        Minimum and maximum number of tasks.
    spot_percent
        Percentage of the tasks on Fargate Spot, 0 to 100. One task always runs on demand.
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
        self._log = short_log(self, "Log")
        execution_role = self._execution_role(repository)
        # The ECS service.
        strategies = _strategies(spot_percent)
        self.service = ecs.FargateService(
            self,
            "Service",
            cluster=cluster,
            task_definition=self._task_definition(cluster, repository, tag, execution_role),
            assign_public_ip=False,
            capacity_provider_strategies=strategies,
            circuit_breaker=ecs.DeploymentCircuitBreaker(enable=True, rollback=True),
            # If the service scales with its queue, a deployment must not reset the number of tasks.
            desired_count=None if count.follows_the_queue else count.maximum,
            force_new_deployment=ecs.ForceNewDeployment(enabled=True, nonce=_nonce(strategies)),
            max_healthy_percent=ecs_hosts.TASKS_WHILE_REPLACED * 100,
            min_healthy_percent=50,
            propagate_tags=ecs.PropagatedTagSource.SERVICE,
            security_groups=[cluster.security_group],
            vpc_subnets=cluster.subnets,
        )
        # The permission to pull, and the cluster's Spot capacity provider, have to exist before the service.
        self.service.node.add_dependency(execution_role, cluster)
        if count.follows_the_queue:
            scale_on_backlog(self.service, worker.queue, count)

    def _task_definition(
        self, cluster: WorkerCluster, repository: ecr.IRepository, tag: str, execution_role: iam.Role
    ) -> ecs.FargateTaskDefinition:
        """Add the definition of a task."""
        definition = fargate_task(
            self,
            cpu=ecs_hosts.TASK_VCPU * 1024,
            memory_mib=ecs_hosts.TASK_MEMORY_GIB * 1024,
            execution_role=execution_role,
            task_role=self._task_role(cluster),
            volumes=[ecs.Volume(name="temporary")],
        )
        container = definition.add_container(
            "main",
            image=ecs.ContainerImage.from_ecr_repository(repository, tag),
            command=["python3", "-m", "batch.worker"],
            environment={
                **self._worker.environment,
                batch_names.DRAIN_SECONDS: str(_DRAIN_SECONDS),
                batch_names.STATUS_FILE: _STATUS_FILE,
            },
            # A healthy process writes the file every 5 s.
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
        acknowledge(definition, {"ECS2": "The variables contain names and addresses, but no secrets."})
        return definition

    def _without_capabilities(self) -> ecs.LinuxParameters:
        """Drop all Linux capabilities."""
        parameters = ecs.LinuxParameters(self, "Linux", init_process_enabled=False)
        parameters.drop_capabilities(ecs.Capability.ALL)
        return parameters

    def _task_role(self, cluster: WorkerCluster) -> iam.IRole:
        """Add the role with the worker's permissions."""
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
            path=self._worker.store.role_path,
        )
        acknowledge_grants(role, self._worker.grant_run(role), WILDCARDS)
        protection = iam.Grant.add_to_principal(
            actions=["ecs:UpdateTaskProtection"],
            grantee=role,
            resource_arns=[
                cdk.Stack.of(self).format_arn(
                    service="ecs", resource="task", resource_name=f"{cluster.cluster_name}/*"
                )
            ],
        )
        acknowledge_grants(
            role, [protection], "A task protects itself, and its ID is known only when it runs."
        )
        return role

    def _execution_role(self, repository: ecr.IRepository) -> iam.Role:
        """Allow ECS to pull only this image and write only this log."""
        role = iam.Role(self, "ExecutionRole", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
        repository.grant_pull(role)
        self._log.grant_write(role)
        acknowledge(
            role,
            {"IAM5[Resource::*]": "ecr:GetAuthorizationToken has no resource type (Amazon ECR API)."},
        )
        return role


def _nonce(strategies: list[ecs.CapacityProviderStrategy]) -> str:
    return strategy_nonce(
        [
            {"capacityProvider": each.capacity_provider, "base": each.base, "weight": each.weight}
            for each in strategies
        ]
    )


def _strategies(spot_percent: int) -> list[ecs.CapacityProviderStrategy]:
    """Return a strategy with one on-demand task, and a share of Spot for the other tasks."""
    on_demand = ecs.CapacityProviderStrategy(capacity_provider="FARGATE", base=1, weight=100 - spot_percent)
    if not spot_percent:
        return [on_demand]
    return [on_demand, ecs.CapacityProviderStrategy(capacity_provider="FARGATE_SPOT", weight=spot_percent)]


#: Maximum number of steps per policy (Application Auto Scaling, Service quotas). CDK splits the steps into
#: two policies.
_MAX_STEPS = 20
_COOLDOWN_MINUTES = 5


def scale_on_backlog(service: ecs.FargateService, queue: BatchShardQueue, count: WorkerCount) -> None:
    """Scale a service to the number of tasks that the messages of its queue need.

    Messages in progress count like waiting ones, because a worker that still has a shard is needed. The
    policy sets the exact number of tasks. It therefore also scales from zero, where a target per task is
    undefined.

    service: The tasks.
    count: Minimum and maximum number of tasks, and shards per task.
    """
    tasks = service.auto_scale_task_count(min_capacity=count.minimum, max_capacity=count.maximum)
    tasks.scale_on_metric(
        "Backlog",
        metric=_backlog(queue),
        scaling_steps=backlog_steps(count),
        adjustment_type=autoscaling.AdjustmentType.EXACT_CAPACITY,
        metric_aggregation_type=autoscaling.MetricAggregationType.MAXIMUM,
        evaluation_periods=1,
        cooldown=cdk.Duration.minutes(_COOLDOWN_MINUTES),
    )


def backlog_steps(count: WorkerCount) -> list[autoscaling.ScalingInterval]:
    """Return the number of tasks for each range of messages.

    count: Minimum and maximum number of tasks, and shards per task. If a policy has too few steps for every
        number between them, a step starts several tasks.
    """
    width = math.ceil((count.maximum - count.minimum) / (_MAX_STEPS - 1))
    numbers = [*range(count.minimum, count.maximum, width), count.maximum]
    # Bounds are halfway between two numbers of messages, so that no number lies on a bound.
    borders = [0.0, *(number * count.shards + 0.5 for number in numbers[:-1]), None]
    return [
        autoscaling.ScalingInterval(change=number, lower=lower, upper=upper)
        for number, (lower, upper) in zip(numbers, pairwise(borders), strict=True)
    ]


def _backlog(queue: BatchShardQueue) -> cloudwatch.IMetric:
    period = cdk.Duration.minutes(1)
    return cloudwatch.MathExpression(
        expression="waiting + working",
        label="Messages waiting or in progress",
        period=period,
        using_metrics={
            "waiting": queue.metric_waiting_shards(period=period),
            "working": queue.metric_shards_in_progress(period=period),
        },
    )
