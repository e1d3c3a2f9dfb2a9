"""The controllers: they start nodes, register pods with the load balancer, and run serving graphs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

import inference_catalog as catalog
from inference_blueprints.render.eks.chart_values import ScaledKind, chart_values
from inference_blueprints.spec.types import Pool
from inference_catalog.catalogue import shipped
from inference_catalog.charts import Chart, charts
from inference_catalog.node_facts import NEURON_SCHEDULER
from inference_catalog.node_images import NEURON_RESOURCE
from inference_catalog.operating_system import SystemName
from inference_constructs.eks import SCALER_ACCOUNT, KubectlAccess, PodScaler, SecretSync
from inference_constructs.helm import HelmRelease
from inference_constructs.network import LoadBalancerControllerIdentity

MODEL_NAMESPACE = charts()["dynamo-model"].namespace


class PlatformStack(cdk.Stack):
    """The controllers' charts, in the order of their dependencies, and the models' namespace.

    access: The cluster.
    charts: Charts by name.
    vpc: VPC of the models' load balancer.
    pools: Section of the blueprint. Some pools need a device plug-in or a feature of Karpenter.
    interruption_queue_name: Queue that Karpenter reads.
    karpenter_reboots: Whether Karpenter reboots nodes before it replaces them.
    secrets_in_pods: Whether pods read secrets of Secrets Manager.
    inference_pools: Whether a model uses an InferencePool.
    spanning_stacks: Serving stacks that have workers across several nodes.
    node_systems: Operating system of the nodes by pool.
    kubernetes_version: Version of the cluster, such as ``1.35``.
    schedulers: Schedulers that pods need in addition to that of the cluster.
    scaled_kinds: Kinds of objects that KEDA scales. Empty if nothing on the platform scales.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        access: KubectlAccess,
        charts: Mapping[str, Chart],
        vpc: ec2.IVpc,
        pools: Sequence[Pool],
        interruption_queue_name: str,
        karpenter_reboots: bool,
        secrets_in_pods: bool,
        inference_pools: bool,
        spanning_stacks: Collection[str],
        node_systems: Mapping[str, SystemName],
        kubernetes_version: str,
        schedulers: Collection[str],
        scaled_kinds: Collection[ScaledKind],
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        self._cluster = access.import_cluster(self)
        self._charts = charts
        name = access.cluster_name
        definitions = self._install("KarpenterDefinitions", "karpenter-crd")
        karpenter = self._install(
            "Karpenter",
            "karpenter",
            cluster_name=name,
            interruption_queue=interruption_queue_name,
            keeps_nodes=any(pool.nodes.min for pool in pools),
            repairs_nodes=any(pool.repaired_by == "karpenter" for pool in pools),
            reboots=karpenter_reboots,
        )
        identity = LoadBalancerControllerIdentity(self, "LoadBalancerIdentity", cluster_name=name)
        load_balancer = self._install(
            "LoadBalancerController",
            "aws-load-balancer-controller",
            cluster_name=name,
            region=self.region,
            vpc_id=vpc.vpc_id,
        )
        # For every platform, also without a model on Dynamo: the objects of such a model have a finalizer
        # (nvidia.com/finalizer) that only the operator removes, so a model that leaves Dynamo needs it still.
        dynamo = self._install("Dynamo", "dynamo-platform", spans_nodes="dynamo" in spanning_stacks)
        load_balancer.node.add_dependency(identity)
        # The load balancer controller's webhooks check the objects of later charts, so it is installed first.
        for earlier, later in ((definitions, karpenter), (karpenter, load_balancer), (load_balancer, dynamo)):
            later.node.add_dependency(earlier)
        if any(pool.efa for pool in pools):
            plug_in = self._install("EfaDevicePlugin", "aws-efa-k8s-device-plugin")
            plug_in.node.add_dependency(dynamo)
        if any(not shipped().operating_systems[name].has_device_plugin for name in node_systems.values()):
            plug_in = self._install("NvidiaDevicePlugin", "nvidia-device-plugin")
            plug_in.node.add_dependency(dynamo)
        neuron_types = _neuron_types(pools)
        if neuron_types:
            plug_in = self._install(
                "NeuronDevicePlugin",
                "neuron-helm-chart",
                instance_types=neuron_types,
                shares_nodes=NEURON_SCHEDULER in schedulers,
                scheduler_tag=catalog.kubernetes_version(kubernetes_version).scheduler_tag,
            )
            plug_in.node.add_dependency(dynamo)
        if inference_pools:
            # A model's chart cannot contain the CRD: Helm installs `crds` only with the first version of a
            # release, and an existing release may switch to llm-d later.
            definition = self._install("InferencePoolDefinition", "inference-pool-crd")
            definition.node.add_dependency(dynamo)
        if "llmD" in spanning_stacks:
            groups = self._install("LeaderWorkerSet", "lws")
            groups.node.add_dependency(dynamo)
        self.scaler = self._add_scaler(name, scaled_kinds) if scaled_kinds else None
        if self.scaler:
            self.scaler.node.add_dependency(dynamo)
        models = self._add_model_namespace()
        if secrets_in_pods:
            sync = SecretSync(self, "SecretSync", cluster=self._cluster, namespace=MODEL_NAMESPACE)
            sync.node.add_dependency(models)

    def _install(self, construct_id: str, name: str, **variables: Any) -> HelmRelease:
        """Install one chart with its values and wait for its pods."""
        chart = self._charts[name]
        return HelmRelease(
            self,
            construct_id,
            cluster=self._cluster,
            chart=chart,
            values=chart_values(name, **variables),
            wait=True,
            create_namespace=chart.namespace != "kube-system",
        )

    def _add_scaler(self, cluster_name: str, kinds: Collection[ScaledKind]) -> PodScaler:
        """Add KEDA, which watches the models' namespace and may scale only these kinds beside Deployments."""
        chart = self._charts["keda"]
        custom = sorted((each.group, each.resource) for each in kinds if each.group != "apps")
        values = chart_values(
            "keda",
            cluster_name=cluster_name,
            namespace=MODEL_NAMESPACE,
            scaled_kinds=custom,
            service_account=SCALER_ACCOUNT,
        )
        return PodScaler(
            self, "Scaler", cluster_name=cluster_name, cluster=self._cluster, chart=chart, values=values
        )

    def _add_model_namespace(self) -> eks.KubernetesManifest:
        """Add the models' namespace. Its pods are ready only when their load balancer target is healthy."""
        labels = {"elbv2.k8s.aws/pod-readiness-gate-inject": "enabled"}
        return eks.KubernetesManifest(
            self,
            "ModelNamespace",
            cluster=self._cluster,
            manifest=[
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": MODEL_NAMESPACE, "labels": labels},
                }
            ],
        )


def _neuron_types(pools: Sequence[Pool]) -> list[str]:
    """Return the instance types with Neuron devices."""
    types = (each for pool in pools for each in pool.types)
    return sorted({each.name for each in types if each.device_resource == NEURON_RESOURCE})
