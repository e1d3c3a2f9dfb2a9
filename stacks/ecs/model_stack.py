"""One model on ECS: its services, its targets at the load balancer, its logs and the roles of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.render.ecs.scaling_policies import ServiceScaling
from inference_blueprints.render.ecs.services import RenderedService
from inference_blueprints.render.ecs.tasks import TaskReferences, to_register
from inference_blueprints.serving.types import (
    DeploymentPlan,
    ModelPlan,
    SecretValue,
    WeightsBucket,
    WeightsMirrorPlan,
)
from inference_blueprints.spec.types import Weights
from inference_constructs import Statement, acknowledge_grants
from inference_constructs.ecs import (
    ExecutionRole,
    LoadTarget,
    RoleScaling,
    ServiceNetwork,
    ServiceProperties,
    ServiceTarget,
    ServingService,
    TaskFloor,
    TaskRole,
    WeightsMirrorBuild,
    execute_command,
)
from inference_constructs.network import Gateway
from inference_constructs.observability import KeptLogGroup
from inference_constructs.serving import (
    ModelTarget,
    ModelTargets,
    keep_artefacts,
    read_certificates,
    read_weights,
)
from inference_constructs.storage import CacheBucket
from inference_contracts.ecs_names import LARGEST_NUMBER, MAIN_CONTAINER, TAG_KEYS, session_log_group
from stacks.shared_parts import ModelAddresses, add_kv_cache, artefact_prefixes, mirror_address


@dataclass(frozen=True)
class EcsPlace:
    """Where the tasks of models run."""

    cluster_name: str
    """Name of the cluster, which is also the platform's."""
    vpc: ec2.IVpc
    """VPC whose private subnets hold the tasks."""
    members: ec2.ISecurityGroup
    """Security group of hosts and tasks."""
    discovery_secret_arn: str | None
    """Secret with the certificates of clients of the discovery store. None if no model has frontends."""
    retention_days: int
    """Days for which logs are kept."""
    certificate_arns: Mapping[str, str]
    """ARN of the secret with the certificate of each deployment, by its release. Empty without a front
    door."""


class EcsModelStack(cdk.Stack):
    """The stack of one model.

    CloudFormation waits until the services are stable, so a complete stack means that the model answers.

    place: Where the tasks run.
    target: Renders the plan.
    plan: The model's part of the serving plan.
    weights: Source of its weights.
    weights_bucket_name: Bucket of mirrored models.
    encryption_key: KMS key of logs, and of the KV cache that the model's workers share.
    gateway: The models' load balancer.
    addresses: Where requests to its deployments come in.
    registries: ARN of the service of AWS Cloud Map in which the front door finds a deployment's entry points,
        by release. Empty without a front door.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: EcsPlace,
        target: EcsTarget,
        plan: ModelPlan,
        weights: Weights,
        weights_bucket_name: str,
        encryption_key: kms.IKey,
        gateway: Gateway,
        addresses: ModelAddresses,
        registries: Mapping[str, str],
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        self._place = place
        host_name = addresses.host_name
        rendered = target.render(plan)
        route = ModelTargets(
            self,
            "Route",
            host_name=host_name,
            gateway=gateway,
            priority=addresses.priority,
            own=addresses.own,
            further=addresses.further,
            door=addresses.door,
            targets=[
                _target(planned, deployment.entry_point)
                for planned, deployment in zip(plan.deployments, rendered, strict=True)
            ],
        )
        services = [service for deployment in rendered for service in deployment.services]
        logs = self._logs(services, encryption_key)
        cache = add_kv_cache(self, plan.shared_kv_cache, encryption_key)
        artefacts = artefact_prefixes(plan, weights_bucket_name)
        mirror = plan.weights_mirror
        prefix = mirror_address(weights_bucket_name, mirror) if mirror else weights.s3
        if mirror and prefix:
            self._copy_weights(mirror, prefix, weights_bucket_name, encryption_key)
        discovery = place.discovery_secret_arn if plan.has_frontends else None
        readable = read_weights(self, prefix, has_manifest=mirror is not None) if prefix else []
        sessions = (
            execute_command(self, encryption_key.key_arn, session_log_group(place.cluster_name))
            if any(service.task.runs_commands for service in services)
            else []
        )
        shown = [
            place.certificate_arns[each.release]
            for each in plan.deployments
            if each.release in place.certificate_arns
        ]
        certificates = [read_certificates(shown)] if shown else []
        roles = self._roles([*readable, *sessions, *certificates], services, cache, discovery, artefacts)
        references = TaskReferences(
            region=self.region,
            task_role_arn=roles[0].role_arn,
            execution_role_arn=roles[1].role_arn,
            discovery_secret=lambda key: f"{discovery}:{key}::",
            weights_bucket=weights_bucket_name if mirror or artefacts else None,
            kv_cache_bucket=cache.bucket_name if cache else None,
            certificate_arns=place.certificate_arns,
        )
        for planned, deployment in zip(plan.deployments, rendered, strict=True):
            group = route.groups[planned.name].ref
            registry = registries.get(planned.release)
            for service in deployment.services:
                added = ServingService(
                    self,
                    service.name,
                    cluster_name=place.cluster_name,
                    name=service.name,
                    task=to_register(service.task, references),
                    service=self._properties(service, group, registry),
                )
                # ECS accepts a target group only when a rule uses it.
                added.service.node.add_dependency(*route.rules, *roles, *logs)
                if service.scaling:
                    scaling = _scaling(self, service.name, place.cluster_name, service.scaling)
                    scaling.node.add_dependency(added.service)
        cdk.CfnOutput(self, "Endpoint", value=f"{gateway.scheme}://{host_name}/v1")

    def _logs(self, services: Sequence[RenderedService], encryption_key: kms.IKey) -> list[KeptLogGroup]:
        """Add the log groups of the tasks."""
        names = sorted({service.task.log_group for service in services})
        return [
            KeptLogGroup(
                self,
                f"Log{index}",
                name=name,
                retention_days=self._place.retention_days,
                encryption_key=encryption_key,
            )
            for index, name in enumerate(names)
        ]

    def _copy_weights(
        self, mirror: WeightsMirrorPlan, prefix: str, weights_bucket_name: str, encryption_key: kms.IKey
    ) -> None:
        """Add the build that copies the model to the bucket. Workers wait for it, and the stack does not."""
        values = mirror.environment.items()
        WeightsMirrorBuild(
            self,
            "WeightsMirrorBuild",
            image=mirror.image,
            environment={
                **{name: value for name, value in values if isinstance(value, str)},
                **{name: weights_bucket_name for name, value in values if isinstance(value, WeightsBucket)},
            },
            secrets={name: value.arn for name, value in values if isinstance(value, SecretValue)},
            s3_prefix=prefix,
            encryption_key=encryption_key,
        )

    def _roles(
        self,
        readable: Sequence[Statement],
        services: Sequence[RenderedService],
        cache: CacheBucket | None,
        discovery_secret_arn: str | None,
        artefacts: Sequence[str],
    ) -> tuple[iam.Role, iam.Role]:
        """Add the role of the programs and the role with which ECS prepares their tasks."""
        task_role = TaskRole(
            self,
            "TaskRole",
            cluster_name=self._place.cluster_name,
            statements=[
                *readable,
                *(
                    statement
                    for index, kept in enumerate(artefacts)
                    for statement in keep_artefacts(self, kept, str(index))
                ),
            ],
            tag_keys=TAG_KEYS,
            reason="Weights and compiled artefacts are many objects below one prefix. Their owner chooses "
            "the KMS key, which can be used only through S3 and only for these objects. Sessions of ECS Exec "
            "have no resources, and name their log streams.",
        )
        if cache:
            grant = cache.grant_read_write(task_role)
            acknowledge_grants(task_role, [grant], "Tasks share all objects in the bucket of the KV cache.")
        logs = f"arn:{self.partition}:logs:{self.region}:{self.account}"
        execution_role = ExecutionRole(
            self,
            "ExecutionRole",
            secret_arns=[*([discovery_secret_arn] if discovery_secret_arn else []), *_secrets(services)],
            log_group_arns=sorted({f"{logs}:log-group:{service.task.log_group}" for service in services}),
        )
        return task_role, execution_role

    def _properties(
        self, service: RenderedService, target_group_arn: str, registry_arn: str | None
    ) -> ServiceProperties:
        """Convert a rendered service. The front door finds only those that take requests."""
        place = self._place
        return ServiceProperties(
            strategy=[
                {"capacityProvider": each.provider, "base": each.base, "weight": each.weight}
                for each in service.strategy
            ],
            desired_count=service.tasks,
            minimum_healthy_percent=service.percents.minimum_healthy,
            maximum_percent=service.percents.maximum,
            grace_seconds=service.grace_seconds,
            binpack=service.packed,
            network=ServiceNetwork(
                subnet_ids=[subnet.subnet_id for subnet in place.vpc.private_subnets],
                security_group_ids=[place.members.security_group_id],
            )
            if service.task.network == "awsvpc"
            else None,
            target=_service_target(service, target_group_arn),
            tags=service.tags,
            runs_commands=service.task.runs_commands,
            registry_arn=registry_arn if service.entry_port is not None else None,
        )


def _target(deployment: DeploymentPlan, entry: RenderedService) -> ModelTarget:
    """Return the entry point of a deployment. Its weight is proportional to its number of accelerators.

    Raises ValueError if the first service has no port for requests.
    """
    if entry.entry_port is None or entry.health_path is None or entry.drain_seconds is None:
        raise ValueError(f"{entry.name} takes no requests")
    return ModelTarget(
        name=deployment.name,
        port=entry.entry_port,
        health_path=entry.health_path,
        weight=deployment.accelerator_count,
        drain_seconds=entry.drain_seconds,
    )


def _service_target(service: RenderedService, target_group_arn: str) -> ServiceTarget | None:
    """Return where the load balancer reaches a service; None if it does not."""
    if service.entry_port is None:
        return None
    return ServiceTarget(target_group_arn=target_group_arn, container=MAIN_CONTAINER, port=service.entry_port)


def _scaling(scope: Construct, service: str, cluster_name: str, scaling: ServiceScaling) -> RoleScaling:
    """Add what changes the number of tasks of a service."""
    added = RoleScaling(
        scope,
        f"Scaling-{service}",
        cluster_name=cluster_name,
        service_name=service,
        minimum=scaling.minimum,
        maximum=scaling.maximum,
        loads=[
            LoadTarget(name=load.name, dimensions=load.dimensions, value=load.target)
            for load in scaling.loads
        ],
        floors=[
            TaskFloor(schedule=floor.schedule, time_zone=floor.time_zone, minimum=floor.minimum)
            for floor in scaling.floors
        ],
        scale_in_cooldown_seconds=scaling.scale_in_cooldown_seconds,
        scale_out_cooldown_seconds=scaling.scale_out_cooldown_seconds,
    )
    if scaling.shifted_maximum is not None and isinstance(added.node.default_child, cdk.CfnResource):
        added.node.default_child.add_metadata(LARGEST_NUMBER, scaling.shifted_maximum)
    return added


def _secrets(services: Sequence[RenderedService]) -> Iterator[str]:
    """Yield the secrets that containers read."""
    for service in services:
        for container in service.task.containers:
            for value in container.environment.values():
                if isinstance(value, SecretValue):
                    yield value.arn
