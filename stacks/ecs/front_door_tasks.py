"""Replicas of the front door as tasks on AWS Fargate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_servicediscovery as servicediscovery

from inference_blueprints.render.ecs.front_door_task import (
    DOOR_SERVICE,
    door_log_group,
    ecs_places,
    front_door_task,
)
from inference_blueprints.render.ecs.tasks import TaskReferences, to_register
from inference_blueprints.render.front_door import replica
from inference_blueprints.render.front_door.places import DoorPlaces
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_constructs.ecs import (
    ExecutionRole,
    ServiceNetwork,
    ServiceProperties,
    ServiceTarget,
    ServingService,
    TaskRole,
    TaskScaling,
)
from inference_constructs.network import Gateway
from inference_constructs.observability import KeptLogGroup
from inference_contracts.door_names import DOOR_JOB, DOOR_PORT, METRICS_PORT, door_domain
from inference_contracts.ecs_names import MAIN_CONTAINER
from inference_contracts.task_tags import LABEL_TAGS, METRICS_JOB_TAG, METRICS_PORT_TAG
from inference_contracts.trace_names import HTTP_PORT
from stacks.door_compute import DoorCompute, DoorParts

_STORE_PORT: Final = 6379
#: Envoy asks for the addresses of entry points again after this time.
_NAME_SECONDS: Final = 5
#: Use of the processors, in percent of the tasks' size, at which replicas are added.
_CPU_PERCENT: Final = 60
#: Time for the programs of a new task to start, for which failed checks do not count.
_GRACE_SECONDS: Final = 120


class DoorTasks(DoorCompute):
    """One ECS service of Fargate tasks, which have a security group of their own.

    cluster_name: Name of the cluster.
    vpc, vpc_cidr: VPC whose private subnets hold the tasks, and its IPv4 range.
    members: Security group of the models' hosts and tasks.
    gateway: The models' load balancer.
    encryption_key: KMS key of the logs.
    retention_days: Days for which logs are kept.
    """

    def __init__(
        self,
        door: DoorPlan,
        *,
        cluster_name: str,
        vpc: ec2.IVpc,
        vpc_cidr: str,
        members: ec2.ISecurityGroup,
        gateway: Gateway,
        encryption_key: kms.IKey,
        retention_days: int,
    ) -> None:
        super().__init__(door)
        self._cluster_name = cluster_name
        self._vpc, self._vpc_cidr = vpc, vpc_cidr
        self._members = members
        self._gateway = gateway
        self._encryption_key = encryption_key
        self._retention_days = retention_days
        self._group: ec2.ISecurityGroup

    def places(self) -> DoorPlaces:
        """Return where the replicas find what they need."""
        return ecs_places(self._door)

    def admit(self, stack: cdk.Stack) -> ec2.ISecurityGroup:
        """Add the security group of the tasks: in from the load balancer, out to AWS and to entry points."""
        group = ec2.SecurityGroup(
            stack, "Tasks", vpc=self._vpc, allow_all_outbound=False, description="Front door"
        )
        balancer = ec2.Peer.security_group_id(self._gateway.security_group_id)
        group.add_ingress_rule(balancer, ec2.Port.tcp(DOOR_PORT), "Requests, from the load balancer")
        ec2.CfnSecurityGroupEgress(
            stack,
            "DoorEgress",
            description="Requests, to the front door",
            from_port=DOOR_PORT,
            to_port=DOOR_PORT,
            group_id=self._gateway.security_group_id,
            ip_protocol="tcp",
            destination_security_group_id=group.security_group_id,
        )
        readers = ec2.Peer.security_group_id(self._members.security_group_id)
        group.add_ingress_rule(readers, ec2.Port.tcp(METRICS_PORT), "Metrics, from Prometheus")
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "AWS, and issuers of tokens")
        group.add_egress_rule(ec2.Peer.ipv4(self._vpc_cidr), ec2.Port.tcp(_STORE_PORT), "Store of the ledger")
        ports = {each.port: "Models" for each in self._door.clusters}
        if self._door.trace_ratio is not None:
            ports[HTTP_PORT] = "Traces"
        for port, what in sorted(ports.items()):
            members = ec2.Peer.security_group_id(self._members.security_group_id)
            group.add_egress_rule(members, ec2.Port.tcp(port), what)
            ec2.CfnSecurityGroupIngress(
                stack,
                f"{what}Ingress{port}",
                description=f"{what}, from the front door",
                from_port=port,
                to_port=port,
                group_id=self._members.security_group_id,
                ip_protocol="tcp",
                source_security_group_id=group.security_group_id,
            )
        self._group = group
        return group

    def registries(self, stack: cdk.Stack) -> Mapping[str, str]:
        """Add a name for each deployment, which has the addresses of its entry points.

        ECS registers each task with its address, and removes it when the task ends (Amazon ECS Developer
        Guide, "Use service discovery to connect Amazon ECS services with DNS names"). Route 53 answers with
        up to eight of them at random (AWS Cloud Map Developer Guide, "AWS Cloud Map service DNS
        configuration"): of more, Envoy uses others after each answer, and ends connections to those that an
        answer leaves out after their requests in progress.
        """
        namespace = servicediscovery.PrivateDnsNamespace(
            stack, "Names", name=door_domain(self._cluster_name), vpc=self._vpc
        )
        return {
            each.name: namespace.create_service(
                f"Name-{each.name}",
                name=each.name,
                custom_health_check=servicediscovery.HealthCheckCustomConfig(failure_threshold=1),
                dns_record_type=servicediscovery.DnsRecordType.A,
                dns_ttl=cdk.Duration.seconds(_NAME_SECONDS),
                routing_policy=servicediscovery.RoutingPolicy.MULTIVALUE,
            ).service_arn
            for each in self._door.clusters
        }

    def add_replicas(self, stack: cdk.Stack, parts: DoorParts) -> None:
        """Add the service. CloudFormation waits until its tasks take requests."""
        log = KeptLogGroup(
            stack,
            "Log",
            name=door_log_group(self._cluster_name),
            retention_days=self._retention_days,
            encryption_key=self._encryption_key,
        )
        role = TaskRole(stack, "Role", cluster_name=self._cluster_name, statements=(), reason="")
        grants = parts.grant(role)
        execution = ExecutionRole(
            stack,
            "ExecutionRole",
            secret_arns=(),
            log_group_arns=[
                f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:"
                f"{door_log_group(self._cluster_name)}"
            ],
        )
        task = front_door_task(self._door, image=parts.image.uri, references=parts.references)
        fewest, most = replica.fewest_replicas(self._door), self._door.replicas
        service = ServingService(
            stack,
            "Replicas",
            cluster_name=self._cluster_name,
            name=DOOR_SERVICE,
            task=to_register(
                task,
                TaskReferences(
                    region=stack.region,
                    task_role_arn=role.role_arn,
                    execution_role_arn=execution.role_arn,
                    discovery_secret=_no_secret,
                ),
            ),
            service=ServiceProperties(
                strategy=[{"capacityProvider": "FARGATE", "weight": 1}],
                desired_count=most if fewest == most else None,
                grace_seconds=_GRACE_SECONDS,
                network=ServiceNetwork(
                    subnet_ids=[subnet.subnet_id for subnet in self._vpc.private_subnets],
                    security_group_ids=[self._group.security_group_id],
                ),
                target=ServiceTarget(
                    target_group_arn=parts.targets.target_group_arn, container=MAIN_CONTAINER, port=DOOR_PORT
                ),
                tags={
                    LABEL_TAGS["platform"]: self._cluster_name,
                    METRICS_JOB_TAG: DOOR_JOB,
                    METRICS_PORT_TAG: str(METRICS_PORT),
                },
            ),
        )
        service.node.add_dependency(role, execution, log, parts.image.build, *parts.earlier)
        for each in grants:
            each.apply_before(service.service)
        if fewest < most:
            scaling = TaskScaling(
                stack,
                "Scaling",
                cluster_name=self._cluster_name,
                service_name=DOOR_SERVICE,
                minimum=fewest,
                maximum=most,
            )
            scaling.follow_processors(_CPU_PERCENT)
            scaling.node.add_dependency(service)


def _no_secret(key: str) -> str:
    raise ValueError(f"the front door reads no secret of the discovery store, asked for {key}")
