"""Metrics of a platform on ECS: Prometheus, the publisher of loads, the CloudWatch agent, and the canary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_servicediscovery as servicediscovery
from constructs import Construct

from inference_blueprints.render.ecs.metrics_task import (
    METRICS_SERVICE,
    PROMETHEUS,
    gpu_metrics_service,
    gpu_metrics_tags,
    gpu_metrics_task,
    metrics_log_group,
    metrics_task,
)
from inference_blueprints.render.ecs.tasks import TaskReferences, to_register
from inference_blueprints.render.monitoring.platform_rules import platform_rules
from inference_blueprints.render.monitoring.recording_rules import rule_groups
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Observability, Spec
from inference_constructs import Statement
from inference_constructs.ecs import (
    ExecutionRole,
    HostService,
    ServiceNetwork,
    ServiceProperties,
    ServingService,
    TaskRole,
)
from inference_constructs.network import Gateway
from inference_constructs.observability import KeptLogGroup, send_traces
from inference_constructs.serving import read_certificates
from inference_contracts import ecs_names
from inference_contracts.task_tags import LABEL_TAGS
from stacks.shared_parts import add_canary

if TYPE_CHECKING:  # only platforms with a front door need its services
    from inference_constructs.front_door import PlatformKeySecret

#: Senders ask for the task's address again after this time.
_NAME_SECONDS = 5


class EcsMetricsStack(cdk.Stack):
    """One Fargate service that scrapes the platform's tasks, records series, and publishes loads.

    A service per pool measures the GPUs of its hosts, and a function asks the models.

    cluster_name: `metadata.name`, a plain string.
    vpc: VPC of the tasks.
    members: Security group of hosts and tasks, whose members reach each other.
    spec: The blueprint's section.
    measured_pools: Pools whose hosts run the exporter of GPU metrics.
    observability: Section of the blueprint.
    gateway: Load balancer of the models, for the canary.
    encryption_key: KMS key of the logs.
    certificate_arns: ARN of the secret with each certificate, by its owner. Empty without a front door.
    canary_keys: Secret with the canary's key for the front door. None without one, or without a canary.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        vpc: ec2.IVpc,
        members: ec2.ISecurityGroup,
        plan: ServingPlan,
        spec: Spec,
        measured_pools: Sequence[str],
        observability: Observability,
        gateway: Gateway,
        encryption_key: kms.IKey,
        certificate_arns: Mapping[str, str],
        canary_keys: PlatformKeySecret | None,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        traces = observability.traces is not None
        log = KeptLogGroup(
            self,
            "Log",
            name=metrics_log_group(cluster_name),
            retention_days=observability.logs.retention_days,
            encryption_key=encryption_key,
        )
        role = TaskRole(
            self,
            "Role",
            cluster_name=cluster_name,
            statements=[
                *_statements(self, cluster_name, traces=traces),
                *([read_certificates([certificate_arns[PROMETHEUS]])] if certificate_arns else []),
            ],
            reason="Lists, descriptions of EC2, metrics of CloudWatch and traces have no resources. Tasks, "
            "services and hosts of the cluster get their names when they run.",
        )
        execution = ExecutionRole(
            self, "ExecutionRole", secret_arns=(), log_group_arns=[_log_arn(self, cluster_name)]
        )
        rules = rule_groups(platform_rules(cluster_name, plan, spec))
        task = metrics_task(
            cluster_name,
            plan,
            rules=rules,
            gpu_metrics=bool(measured_pools),
            traces=traces,
            region=self.region,
        )
        references = TaskReferences(
            region=self.region,
            task_role_arn=role.role_arn,
            execution_role_arn=execution.role_arn,
            discovery_secret=_no_secret,
            certificate_arns=certificate_arns,
        )
        service = ServingService(
            self,
            "Metrics",
            cluster_name=cluster_name,
            name=METRICS_SERVICE,
            task=to_register(task, references),
            service=ServiceProperties(
                strategy=[{"capacityProvider": "FARGATE", "weight": 1}],
                desired_count=1,
                # The new task runs before the old one ends.
                minimum_healthy_percent=100,
                maximum_percent=200,
                grace_seconds=None,
                binpack=False,
                network=ServiceNetwork(
                    subnet_ids=[subnet.subnet_id for subnet in vpc.private_subnets],
                    security_group_ids=[members.security_group_id],
                ),
                target=None,
                tags={LABEL_TAGS["platform"]: cluster_name},
                registry_arn=_name(self, cluster_name, vpc).service_arn if traces else None,
            ),
        )
        # The permission to pull must exist before the first task starts.
        service.node.add_dependency(execution, role, log)
        exporter = to_register(gpu_metrics_task(cluster_name), replace(references, task_role_arn=None))
        for pool in measured_pools:
            measured = HostService(
                self,
                f"Gpu-{pool}",
                cluster_name=cluster_name,
                name=gpu_metrics_service(pool),
                pool=pool,
                task=exporter,
                tags=gpu_metrics_tags(cluster_name, pool),
            )
            measured.node.add_dependency(execution, log)
        add_canary(
            self,
            platform=cluster_name,
            observability=observability,
            models=spec.models,
            vpc=vpc,
            gateway=gateway,
            encryption_key=encryption_key,
            door=plan.front_door,
            keys=canary_keys,
        )


def _name(stack: cdk.Stack, platform: str, vpc: ec2.IVpc) -> servicediscovery.IService:
    """Give the task a name, to which other tasks send traces.

    ECS registers each task with its address, and removes it when the task ends (Amazon ECS Developer Guide,
    "Use service discovery to connect Amazon ECS services with DNS names"). While none runs, senders drop
    their spans and try again with later ones.
    """
    names = servicediscovery.PrivateDnsNamespace(
        stack, "Names", name=ecs_names.metrics_domain(platform), vpc=vpc
    )
    return names.create_service(
        "Collector",
        name=ecs_names.COLLECTOR,
        custom_health_check=servicediscovery.HealthCheckCustomConfig(failure_threshold=1),
        dns_record_type=servicediscovery.DnsRecordType.A,
        dns_ttl=cdk.Duration.seconds(_NAME_SECONDS),
    )


def _log_arn(stack: cdk.Stack, platform: str) -> str:
    """Return the ARN of the log group."""
    return (
        f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:{metrics_log_group(platform)}"
    )


def _no_secret(key: str) -> str:
    raise ValueError(f"the metrics task reads no secret, asked for {key}")


def _statements(stack: cdk.Stack, cluster: str, *, traces: bool) -> list[Statement]:
    """Return what the programs call.

    Service Authorization Reference, "Actions, resources, and condition keys for Amazon Elastic Container
    Service": lists have no resource that names a cluster, and the condition ``ecs:cluster``.
    """
    prefix = f"arn:{stack.partition}:ecs:{stack.region}:{stack.account}"
    return [
        {
            "Sid": "ListTasks",
            "Effect": "Allow",
            "Action": ["ecs:ListServices", "ecs:ListTasks"],
            "Resource": "*",
            "Condition": {"ArnEquals": {"ecs:cluster": f"{prefix}:cluster/{cluster}"}},
        },
        {
            "Sid": "DescribeTasks",
            "Effect": "Allow",
            "Action": ["ecs:DescribeContainerInstances", "ecs:DescribeServices", "ecs:DescribeTasks"],
            "Resource": [
                f"{prefix}:container-instance/{cluster}/*",
                f"{prefix}:service/{cluster}/*",
                f"{prefix}:task/{cluster}/*",
            ],
        },
        {"Sid": "DescribeHosts", "Effect": "Allow", "Action": "ec2:DescribeInstances", "Resource": "*"},
        # The OTLP endpoint of CloudWatch:
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-OTLPEndpoint.html
        {"Sid": "PutMetrics", "Effect": "Allow", "Action": "cloudwatch:PutMetricData", "Resource": "*"},
        *([send_traces()] if traces else []),
    ]
