"""One model: its Helm releases, its route and the permissions of its pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_blueprints.render.eks.eks_target import EksTarget
from inference_blueprints.render.eks.model_values import weights_mirror_values
from inference_blueprints.serving import types as plans
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan
from inference_blueprints.spec.types import Weights
from inference_catalog.charts import charts
from inference_constructs import acknowledge_grants
from inference_constructs.eks import KubectlAccess, PodIdentity
from inference_constructs.helm import HelmRelease
from inference_constructs.network import Gateway
from inference_constructs.serving import Backend, ModelRoute, WeightsIdentity, read_certificates
from inference_constructs.storage import CacheBucket, WeightsMirrorJob
from stacks.shared_parts import ModelAddresses, add_kv_cache, artefact_prefixes, mirror_address

#: Namespace of all models.
_NAMESPACE = charts()["dynamo-model"].namespace
_MIRROR_CHART = charts()["weights-mirror"]


class ModelStack(cdk.Stack):
    """The stack of one model.

    The deployment does not wait for accelerators, so a complete stack does not mean that the model answers.

    access: The cluster.
    plan: The model's part of the serving plan.
    weights: Source of its weights.
    weights_bucket_name: Bucket of mirrored models.
    encryption_key: KMS key of the KV cache that the model's workers share.
    gateway: The models' load balancer.
    addresses: Where requests to its deployments come in.
    observed_platform: `metadata.name`, if the model's pods are scraped; None without observability.
    shifted: Whether the capacity shift sets the floors of elastic workers.
    certificate_arns: ARN of the secret with the certificate of each deployment, by its release. Empty without
        a front door.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        access: KubectlAccess,
        plan: ModelPlan,
        weights: Weights,
        weights_bucket_name: str,
        encryption_key: kms.IKey,
        gateway: Gateway,
        addresses: ModelAddresses,
        observed_platform: str | None,
        shifted: bool,
        certificate_arns: Mapping[str, str],
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        cluster = access.import_cluster(self)
        host_name = addresses.host_name
        route = ModelRoute(
            self,
            "Route",
            cluster=cluster,
            namespace=_NAMESPACE,
            host_name=host_name,
            gateway=gateway,
            priority=addresses.priority,
            own=addresses.own,
            further=addresses.further,
            door=addresses.door,
            backends=[_backend(deployment) for deployment in plan.deployments],
        )
        earlier: list[Construct] = [route]
        variables: dict[str, str] = {}
        artefacts = artefact_prefixes(plan, weights_bucket_name)
        if plan.weights_mirror or artefacts:
            variables = {"weights_bucket": weights_bucket_name}
        if plan.weights_mirror:
            earlier.append(
                self._mirror(access.cluster_name, cluster, plan.weights_mirror, weights, variables)
            )
        cache = add_kv_cache(self, plan.shared_kv_cache, encryption_key)
        # A router of llm-d has a service account of its own; other entry points have that of their workers.
        routed = [each for each in plan.deployments if each.picker and each.release in certificate_arns]
        own = [
            certificate_arns[each.release]
            for each in plan.deployments
            if each not in routed and each.release in certificate_arns
        ]
        if weights.in_s3 or weights.token_secret_arn or cache or artefacts or own:
            earlier.append(
                self._identity(
                    access.cluster_name,
                    plan,
                    weights,
                    variables,
                    cache=cache,
                    artefacts=artefacts,
                    certificates=own,
                )
            )
        for each in routed:
            earlier.append(self._router_identity(access.cluster_name, each, certificate_arns[each.release]))
        if cache:
            variables["kv_cache_bucket"] = cache.bucket_name
        target = EksTarget(
            **variables,
            observed_platform=observed_platform,
            shifted=shifted,
            certificate_arns=certificate_arns,
        )
        for deployment, chart_values in zip(plan.deployments, target.render(plan), strict=True):
            HelmRelease(
                self,
                f"Deployment-{deployment.name}",
                cluster=cluster,
                chart=charts()[deployment.chart],
                release=deployment.release,
                values=chart_values,
            ).node.add_dependency(*earlier)
        cdk.CfnOutput(self, "Endpoint", value=f"{gateway.scheme}://{host_name}/v1")

    def _mirror(
        self,
        cluster_name: str,
        cluster: eks.ICluster,
        mirror: plans.WeightsMirrorPlan,
        weights: Weights,
        variables: Mapping[str, str],
    ) -> WeightsMirrorJob:
        """Add the Job that copies the model to the bucket. The release does not wait for the copy."""
        return WeightsMirrorJob(
            self,
            "WeightsMirror",
            cluster_name=cluster_name,
            cluster=cluster,
            chart=_MIRROR_CHART,
            release=mirror.release,
            values=weights_mirror_values(mirror, weights_bucket=variables["weights_bucket"]),
            s3_prefix=mirror_address(variables["weights_bucket"], mirror),
            secret_arn=weights.token_secret_arn,
        )

    def _identity(
        self,
        cluster_name: str,
        plan: ModelPlan,
        weights: Weights,
        variables: Mapping[str, str],
        *,
        cache: CacheBucket | None,
        artefacts: Sequence[str],
        certificates: Sequence[str],
    ) -> WeightsIdentity:
        """Let all pods read weights and secrets, share the KV cache and keep compiled artefacts.

        With a mirror they need no token.
        """
        mirror = plan.weights_mirror
        identity = WeightsIdentity(
            self,
            "Identity",
            cluster_name=cluster_name,
            namespace=_NAMESPACE,
            service_accounts=[deployment.service_account for deployment in plan.deployments],
            s3_prefix=mirror_address(variables["weights_bucket"], mirror) if mirror else weights.s3,
            has_manifest=mirror is not None,
            secret_arn=None if mirror else weights.token_secret_arn,
            artefact_prefixes=artefacts,
            certificate_arns=certificates,
        )
        if cache:
            grant = cache.grant_read_write(identity)
            acknowledge_grants(identity, [grant], "Pods share all objects in the bucket of the KV cache.")
        return identity

    def _router_identity(
        self, cluster_name: str, deployment: DeploymentPlan, certificate_arn: str
    ) -> PodIdentity:
        """Let a router of llm-d read the certificate that it shows."""
        return PodIdentity(
            self,
            f"Router-{deployment.name}",
            cluster_name=cluster_name,
            namespace=_NAMESPACE,
            service_accounts=[f"{deployment.release}-{deployment.entry_point.name}"],
            statements=[read_certificates([certificate_arn])],
        )


def _backend(deployment: DeploymentPlan) -> Backend:
    """Return the entry point of a deployment. Its weight is proportional to its number of accelerators."""
    entry = deployment.entry_point
    return Backend(
        name=deployment.name,
        release=deployment.release,
        service=f"{deployment.release}-{entry.name}",
        port=deployment.target_port,
        health_path=entry.probes.readiness.path,
        weight=deployment.accelerator_count,
        drain_seconds=entry.termination_grace_seconds,
    )
