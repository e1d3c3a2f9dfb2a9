"""ECS services of rendered tasks: one process of a deployment, or one task on each host of a pool."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecs as ecs
from constructs import Construct

from inference_constructs.ecs.task_scaling import TaskScaling
from inference_constructs.findings import acknowledge
from inference_contracts import scale_metrics
from inference_contracts.ecs_names import POOL_ATTRIBUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTarget:
    """A load that a policy keeps at a value."""

    name: str
    """Name within the role."""
    dimensions: Mapping[str, str]
    """Dimensions of its metric."""
    value: float
    """Value to keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFloor:
    """A smallest number of tasks from a time on."""

    schedule: str
    """Cron expression in AWS' form."""
    time_zone: str
    """Its IANA time zone."""
    minimum: int
    """The number."""


class RoleScaling(TaskScaling):
    """The number of tasks of a service, which follows its load between two numbers.

    Parameters
    ----------
    cluster_name, service_name
        Names of the cluster and of the service, which must exist before. Its desired count is left out of its
        properties, so that a deployment does not reset it.
    minimum, maximum
        Smallest and largest number of tasks.
    loads
        Loads. The one that needs most tasks decides.
    floors
        Smallest numbers by schedule. The newest action holds.
    scale_in_cooldown_seconds, scale_out_cooldown_seconds
        Time after which a policy removes, or adds, tasks again.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        service_name: str,
        minimum: int,
        maximum: int,
        loads: Sequence[LoadTarget],
        floors: Sequence[TaskFloor],
        scale_in_cooldown_seconds: int,
        scale_out_cooldown_seconds: int,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            cluster_name=cluster_name,
            service_name=service_name,
            minimum=minimum,
            maximum=maximum,
        )
        for load in loads:
            self.scale_to_track_metric(
                f"Load-{load.name}",
                custom_metric=cloudwatch.Metric(
                    namespace=scale_metrics.METRIC_NAMESPACE,
                    metric_name=scale_metrics.LOAD,
                    dimensions_map=dict(load.dimensions),
                    # While the publisher is replaced, two write the same load, and a sum counts it twice.
                    statistic=cloudwatch.Stats.AVERAGE,
                    period=cdk.Duration.minutes(1),
                ),
                target_value=load.value,
                scale_in_cooldown=cdk.Duration.seconds(scale_in_cooldown_seconds),
                scale_out_cooldown=cdk.Duration.seconds(scale_out_cooldown_seconds),
            )
        for place, floor in enumerate(floors):
            self.scale_on_schedule(
                f"Floor{place}",
                schedule=autoscaling.Schedule.expression(floor.schedule),
                time_zone=cdk.TimeZone.of(floor.time_zone),
                min_capacity=floor.minimum,
            )


def strategy_nonce(strategy: Sequence[Mapping[str, Any]]) -> str:
    """Return a word that differs for each strategy.

    strategy: Capacity providers in the form of the API: ``capacityProvider``, ``base``, ``weight``.
    """
    text = json.dumps([dict(each) for each in strategy], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


#: Property by field of the request.
_FIELDS = {
    "containerDefinitions": "container_definitions",
    "cpu": "cpu",
    "executionRoleArn": "execution_role_arn",
    "ephemeralStorage": "ephemeral_storage",
    "family": "family",
    "memory": "memory",
    "networkMode": "network_mode",
    "placementConstraints": "placement_constraints",
    "requiresCompatibilities": "requires_compatibilities",
    "runtimePlatform": "runtime_platform",
    "taskRoleArn": "task_role_arn",
    "volumes": "volumes",
}
#: Fields of one object, which jsii takes only as its class.
_STRUCTURES = frozenset({"ephemeralStorage", "runtimePlatform"})


def task_definition(scope: Construct, task: Mapping[str, Any]) -> ecs.CfnTaskDefinition:
    """Add the task definition. CloudFormation has the fields of the request, so its lists are passed on.

    task: A request of RegisterTaskDefinition, with references as values.
    Raises ValueError if the request has a field that is not passed on.
    """
    unknown = task.keys() - _FIELDS.keys()
    if unknown:
        raise ValueError(f"no property of the task definition for {', '.join(sorted(unknown))}")
    platform, storage = task.get("runtimePlatform"), task.get("ephemeralStorage")
    definition = ecs.CfnTaskDefinition(
        scope,
        "Task",
        runtime_platform=ecs.CfnTaskDefinition.RuntimePlatformProperty(
            cpu_architecture=platform["cpuArchitecture"],
            operating_system_family=platform["operatingSystemFamily"],
        )
        if platform
        else None,
        ephemeral_storage=ecs.CfnTaskDefinition.EphemeralStorageProperty(size_in_gib=storage["sizeInGiB"])
        if storage
        else None,
        **{_FIELDS[name]: value for name, value in task.items() if name not in _STRUCTURES},
    )
    acknowledge(definition, {"ECS2": "The variables contain names and addresses, but no secrets."})
    return definition


#: Number of tasks that fail to start until a deployment is taken back. It is small, because each task loads
#: a model.
_FAILED_TASKS = 3


@dataclass(frozen=True)
class ServiceNetwork:
    """Network of tasks that have an address of their own."""

    subnet_ids: Sequence[str]
    security_group_ids: Sequence[str]
    """`subnet_ids`, `security_group_ids`: Subnets and security groups of the tasks."""


@dataclass(frozen=True)
class ServiceTarget:
    """Where the load balancer reaches a task."""

    target_group_arn: str
    """Target group with which ECS registers tasks."""
    container: str
    """Name of the container."""
    port: int
    """Its port."""


@dataclass(frozen=True)
class ServiceProperties:
    """The properties of a service."""

    strategy: Sequence[Mapping[str, Any]]
    """Capacity providers in the form of the API: ``capacityProvider``, ``base``, ``weight``."""
    desired_count: int | None = None
    """Number of tasks; None if something else scales it, so that a deployment does not reset it."""
    minimum_healthy_percent: int = 100
    maximum_percent: int = 200
    """`minimum_healthy_percent`, `maximum_percent`: Number of tasks during a deployment, in percent of the
    number of tasks."""
    grace_seconds: int | None = None
    """Time for which failed health checks of a new task do not count."""
    binpack: bool = False
    """Whether ECS fills one host after the other. Managed Instances place tasks themselves, and Fargate has
    no hosts."""
    network: ServiceNetwork | None = None
    """Network of the tasks; None for tasks in the network of their host."""
    target: ServiceTarget | None = None
    """Where the load balancer reaches a task; None for a service that it does not reach."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of the service, which its tasks get."""
    runs_commands: bool = False
    """Whether ECS Exec may run commands in its tasks."""
    registry_arn: str | None = None
    """Service of AWS Cloud Map that gives the tasks a name; None for tasks without one."""


class ServingService(Construct):
    """A task definition and its service.

    The task definition is the request that the ECS target renders, so that what is deployed is what its
    tests hold against the API. The L2 constructs of aws-cdk-lib have a class for each kind of compute, and
    none of them takes such a request.

    Parameters
    ----------
    cluster_name
        Cluster of the service.
    name
        Name of the service, unique in the cluster.
    task
        A request of RegisterTaskDefinition, with references as values.
    service
        Properties of the service.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        name: str,
        task: Mapping[str, Any],
        service: ServiceProperties,
    ) -> None:
        super().__init__(scope, construct_id)
        definition = task_definition(self, task)
        network, target = service.network, service.target
        #: The service.
        self.service = ecs.CfnService(
            self,
            "Service",
            # ECS would move tasks to other zones to even them out, and each move loads a model again.
            availability_zone_rebalancing="DISABLED",
            capacity_provider_strategy=[
                ecs.CfnService.CapacityProviderStrategyItemProperty(
                    capacity_provider=each["capacityProvider"], base=each.get("base"), weight=each["weight"]
                )
                for each in service.strategy
            ],
            cluster=cluster_name,
            deployment_configuration=ecs.CfnService.DeploymentConfigurationProperty(
                deployment_circuit_breaker=ecs.CfnService.DeploymentCircuitBreakerProperty(
                    enable=True,
                    rollback=True,
                    threshold_configuration=ecs.CfnService.ThresholdConfigurationProperty(
                        type="COUNT", value=_FAILED_TASKS
                    ),
                ),
                maximum_percent=service.maximum_percent,
                minimum_healthy_percent=service.minimum_healthy_percent,
            ),
            desired_count=service.desired_count,
            enable_ecs_managed_tags=True,
            enable_execute_command=service.runs_commands,
            force_new_deployment=ecs.CfnService.ForceNewDeploymentProperty(
                enable_force_new_deployment=True, force_new_deployment_nonce=strategy_nonce(service.strategy)
            ),
            health_check_grace_period_seconds=service.grace_seconds,
            load_balancers=[
                ecs.CfnService.LoadBalancerProperty(
                    container_name=target.container,
                    container_port=target.port,
                    target_group_arn=target.target_group_arn,
                )
            ]
            if target
            else None,
            network_configuration=_network(network) if network else None,
            # An update without a value would keep the old one (API reference, UpdateService).
            placement_strategies=[ecs.CfnService.PlacementStrategyProperty(type="binpack", field="memory")]
            if service.binpack
            else [],
            propagate_tags="SERVICE",
            service_name=name,
            service_registries=[ecs.CfnService.ServiceRegistryProperty(registry_arn=service.registry_arn)]
            if service.registry_arn
            else None,
            task_definition=definition.ref,
        )
        for key, value in service.tags.items():
            self.service.tags.set_tag(key, value)


def _network(network: ServiceNetwork) -> ecs.CfnService.NetworkConfigurationProperty:
    return ecs.CfnService.NetworkConfigurationProperty(
        awsvpc_configuration=ecs.CfnService.AwsVpcConfigurationProperty(
            assign_public_ip="DISABLED",
            security_groups=list(network.security_group_ids),
            subnets=list(network.subnet_ids),
        )
    )


class HostService(Construct):
    """A task definition and its service with the scheduling strategy ``DAEMON``.

    ECS starts its task before others on a new host, and stops it after them. It is not for Managed Instances,
    whose daemons are another resource: there, a daemon that stops makes ECS replace the host.

    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_service-options.html
    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/managed-daemons.html

    Parameters
    ----------
    cluster_name
        Cluster of the service.
    name
        Name of the service, unique in the cluster.
    pool
        Pool of the hosts.
    task
        A request of RegisterTaskDefinition, with references as values.
    tags
        Tags of the service, which its tasks get.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        name: str,
        pool: str,
        task: Mapping[str, Any],
        tags: Mapping[str, str],
    ) -> None:
        super().__init__(scope, construct_id)
        definition = task_definition(self, task)
        service = ecs.CfnService(
            self,
            "Service",
            cluster=cluster_name,
            # A host has one such task, so the old one ends before the new one starts: a daemon service takes
            # no other percentage than 100 (API reference, DeploymentConfiguration, maximumPercent).
            deployment_configuration=ecs.CfnService.DeploymentConfigurationProperty(
                maximum_percent=100, minimum_healthy_percent=0
            ),
            enable_ecs_managed_tags=True,
            enable_execute_command=False,
            # It starts no hosts, so it needs no capacity provider.
            launch_type="EC2",
            placement_constraints=[
                ecs.CfnService.PlacementConstraintProperty(
                    type="memberOf", expression=f"attribute:{POOL_ATTRIBUTE} == {pool}"
                )
            ],
            propagate_tags="SERVICE",
            scheduling_strategy="DAEMON",
            service_name=name,
            task_definition=definition.ref,
        )
        for key, value in tags.items():
            service.tags.set_tag(key, value)
