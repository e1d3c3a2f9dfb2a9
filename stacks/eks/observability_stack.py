"""Metrics, logs and traces of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_blueprints.render.eks.chart_values import chart_values
from inference_blueprints.render.eks.insights_configuration import insights_configuration
from inference_blueprints.render.eks.prometheus_certificate import prometheus_certificate, scraped_door
from inference_blueprints.render.eks.prometheus_size import prometheus_size
from inference_blueprints.render.monitoring.platform_rules import platform_rules
from inference_blueprints.render.monitoring.recording_rules import rule_groups
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.derived import controllers_of
from inference_blueprints.spec.types import Observability, Spec
from inference_catalog.catalogue import shipped
from inference_catalog.charts import charts
from inference_catalog.releases import Releases
from inference_constructs.eks import KubectlAccess, PodIdentity
from inference_constructs.helm import HelmRelease
from inference_constructs.network import Gateway
from inference_constructs.observability import ContainerInsights
from inference_constructs.serving import read_certificates
from inference_contracts.operations_names import HEALTH
from stacks.shared_parts import add_canary

if TYPE_CHECKING:  # only platforms with a front door need its services
    from inference_constructs.front_door import PlatformKeySecret


class ObservabilityStack(cdk.Stack):
    """Container Insights, the Prometheus that KEDA asks, and the exporter of GPU metrics.

    access: The cluster.
    observability: Section of the blueprint.
    releases: Versions of charts and add-ons.
    gpu_nodes: Whether a pool has NVIDIA accelerators.
    encryption_key: KMS key of the logs.
    vpc, gateway: Network of the models, and their load balancer, for the canary.
    spec: The blueprint's section.
    certificate_arn: ARN of the secret with the certificate of Prometheus. None without a front door.
    canary_keys: Secret with the canary's key for the front door. None without one, or without a canary.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        access: KubectlAccess,
        observability: Observability,
        releases: Releases,
        plan: ServingPlan,
        gpu_nodes: bool,
        encryption_key: kms.IKey,
        vpc: ec2.IVpc,
        gateway: Gateway,
        spec: Spec,
        certificate_arn: str | None,
        canary_keys: PlatformKeySecret | None,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        self._cluster = access.import_cluster(self)
        self._releases = releases
        namespace = charts()["dynamo-model"].namespace
        gpu_namespace = releases.charts["dcgm-exporter"].namespace if gpu_nodes else None
        ContainerInsights(
            self,
            "Insights",
            cluster_name=access.cluster_name,
            configuration=insights_configuration(
                region=self.region,
                cluster_name=access.cluster_name,
                gpu_namespace=gpu_namespace,
                traces=observability.traces is not None,
            ),
            version=releases.add_ons["amazon-cloudwatch-observability"],
            retention_days=observability.logs.retention_days,
            encryption_key=encryption_key,
            traces=observability.traces is not None,
        )
        prometheus = self._install(
            "Prometheus",
            "prometheus",
            size=prometheus_size(plan).quantities,
            namespace=namespace,
            gpu_namespace=gpu_namespace,
            keda_namespace=releases.charts["keda"].namespace if plan.is_elastic else None,
            dropped=shipped().serving_metrics.dropped_names,
            platform=access.cluster_name,
            rules=rule_groups(platform_rules(access.cluster_name, plan, spec)),
            certificate=prometheus_certificate(certificate_arn),
            door=scraped_door(plan.front_door),
        )
        if certificate_arn:
            # The chart calls its service account as the server.
            prometheus.node.add_dependency(
                PodIdentity(
                    self,
                    "PrometheusIdentity",
                    cluster_name=access.cluster_name,
                    namespace=releases.charts["prometheus"].namespace,
                    service_accounts=["prometheus-server"],
                    statements=[read_certificates([certificate_arn])],
                )
            )
        if gpu_nodes:
            exporter = self._install(
                "GpuMetrics", "dcgm-exporter", finds_faults=HEALTH in controllers_of(spec)
            )
            # Both charts are in one namespace, which the first one creates.
            exporter.node.add_dependency(prometheus)

        add_canary(
            self,
            platform=access.cluster_name,
            observability=observability,
            models=spec.models,
            vpc=vpc,
            gateway=gateway,
            encryption_key=encryption_key,
            door=plan.front_door,
            keys=canary_keys,
        )

    def _install(self, construct_id: str, name: str, **variables: Any) -> HelmRelease:
        """Install one chart with its values and wait for its pods."""
        return HelmRelease(
            self,
            construct_id,
            cluster=self._cluster,
            chart=self._releases.charts[name],
            values=chart_values(name, **variables),
            wait=True,
            create_namespace=True,
        )
