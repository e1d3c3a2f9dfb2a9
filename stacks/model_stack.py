"""One model: the releases of its deployments, its route, and the rights of its pods."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from inference_blueprints.catalog.charts import charts
from inference_blueprints.serving.chart_values import chart_values
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan
from inference_blueprints.spec.types import Weights
from inference_constructs.eks.cluster_access import ClusterAccess
from inference_constructs.helm.release import HelmRelease
from inference_constructs.network.gateway import Gateway
from inference_constructs.serving.model_route import Backend, ModelRoute
from inference_constructs.serving.weights_identity import WeightsIdentity

_CHART = charts()["dynamo-model"]


class ModelStack(cdk.Stack):
    """A model behind one name.

    Nothing here waits for accelerators: whether the model answers is not CloudFormation's business.

    Parameters
    ----------
    access
        The cluster.
    plan
        The model's part of the serving plan.
    weights
        Where its weights come from.
    gateway
        The models' load balancer.
    priority
        Priority of its rule on the listener.
    env
        Account and region.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        access: ClusterAccess,
        plan: ModelPlan,
        weights: Weights,
        gateway: Gateway,
        priority: int,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        cluster = access.cluster_in(self)
        host_name = f"{plan.name}.{gateway.zone_name}"
        route = ModelRoute(
            self,
            "Route",
            cluster=cluster,
            namespace=_CHART.namespace,
            host_name=host_name,
            gateway=gateway,
            priority=priority,
            backends=[_backend(deployment) for deployment in plan.deployments],
        )
        earlier: list[Construct] = [route]
        if weights.s3 or weights.token_secret_arn:
            earlier.append(self._identity(access.cluster_name, plan, weights))
        for deployment in plan.deployments:
            HelmRelease(
                self,
                f"Deployment-{deployment.name}",
                cluster=cluster,
                chart=_CHART,
                release=deployment.release,
                values=chart_values(_CHART.name, deployment=deployment),
            ).node.add_dependency(*earlier)
        cdk.CfnOutput(self, "Endpoint", value=f"{gateway.scheme}://{host_name}/v1")

    def _identity(self, cluster_name: str, plan: ModelPlan, weights: Weights) -> WeightsIdentity:
        """Let the pods of every deployment read what they need."""
        return WeightsIdentity(
            self,
            "Identity",
            cluster_name=cluster_name,
            namespace=_CHART.namespace,
            service_accounts=[_service_account(deployment) for deployment in plan.deployments],
            s3_prefix=weights.s3,
            secret_arn=weights.token_secret_arn,
        )


def _backend(deployment: DeploymentPlan) -> Backend:
    """Describe the entry point of a deployment; it takes requests in proportion to its workers."""
    entry, port = deployment.entry_point, deployment.entry_point.ports[0]
    return Backend(
        name=deployment.name,
        service=f"{deployment.release}-{entry.name}",
        port=port.number,
        health_path=entry.probes.readiness.path,
        weight=sum(process.replicas for process in deployment.processes if process.role == "worker"),
        drain_seconds=entry.termination_grace_seconds,
    )


def _service_account(deployment: DeploymentPlan) -> str:
    """Return the service account that Dynamo's operator makes for the pods of a graph."""
    return f"{deployment.release}-k8s-service-discovery"
