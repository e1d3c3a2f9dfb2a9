"""Values of charts that are not ours: only keys that those charts read."""

from __future__ import annotations

from typing import Any

import pytest

from inference_blueprints.render.eks.chart_values import chart_values
from inference_blueprints.render.eks.prometheus_certificate import prometheus_certificate, scraped_door
from inference_blueprints.render.eks.prometheus_size import PrometheusSize
from inference_catalog.catalogue import shipped
from inference_catalog.charts import charts
from tests.unit.render.front_door.small_plans import small_plan

#: Paths read off each chart's own values.yaml, at the version that is installed or, for Dynamo's platform
#: chart, at the newest whose source was found. A key outside of this list would be written for nobody.
CHECKED: dict[str, tuple[str, set[str]]] = {
    # aws/karpenter-provider-aws v1.15.1, charts/karpenter/values.yaml
    "karpenter": (
        "1.15.1",
        {
            "serviceAccount.name",
            "settings.clusterName",
            "settings.interruptionQueue",
            "settings.featureGates.nodeRepair",
            "settings.legacyNodeRepair",
            "settings.featureGates.terminateFirstRepair",
            "settings.awsFeatureGates.rebootForRepair",
            "settings.featureGates.staticCapacity",
            "controller.resources",
        },
    ),
    # aws/karpenter-provider-aws v1.15.1, charts/karpenter-crd/values.yaml: only annotations
    "karpenter-crd": ("1.15.1", set()),
    # kubernetes-sigs/aws-load-balancer-controller v3.5.0, helm/aws-load-balancer-controller/values.yaml
    "aws-load-balancer-controller": (
        "3.5.0",
        {
            "clusterName",
            "region",
            "vpcId",
            "serviceAccount.name",
            "createIngressClassResource",
            "ingressClassParams.create",
            "enableServiceMutatorWebhook",
            "enableShield",
            "enableWaf",
            "enableWafv2",
            "keepTLSSecret",
            "podDisruptionBudget",
            "resources",
        },
    ),
    # kubernetes-sigs/kueue v0.19.2, charts/kueue/values.yaml
    "kueue": (
        "0.19.2",
        {
            "controllerManager.replicas",
            "controllerManager.podDisruptionBudget.enabled",
            "controllerManager.manager.resources",
            "managerConfig.controllerManagerConfigYaml",
        },
    ),
    # kedacore/charts, keda/values.yaml of chart 2.20.2
    "keda": (
        "2.20.2",
        {
            "clusterName",
            "watchNamespace",
            "serviceAccount.operator.name",
            "crds.additionalAnnotations",
            "rbac.enabledCustomScaledRefKinds",
            "rbac.scaledRefKinds",
            "permissions.operator.restrict.secret",
            "permissions.metricServer.restrict.secret",
            "image.pullPolicy",
            "prometheus.operator.enabled",
            "operator.replicaCount",
            "metricsServer.replicaCount",
            "podDisruptionBudget.operator",
            "podDisruptionBudget.metricServer",
            "resources.operator",
            "resources.metricServer",
            "resources.webhooks",
        },
    ),
    # prometheus-community/helm-charts, charts/prometheus/values.yaml and templates/ of 29.27.0
    "prometheus": (
        "29.27.0",
        {
            "alertmanager.enabled",
            "kube-state-metrics.enabled",
            "prometheus-node-exporter.enabled",
            "prometheus-pushgateway.enabled",
            "configmapReload.prometheus.resources",
            "server.fullnameOverride",
            "server.replicaCount",
            "server.strategy",
            "server.podDisruptionBudget",
            "server.persistentVolume.enabled",
            "server.emptyDir.sizeLimit",
            "server.retention",
            "server.retentionSize",
            "server.global",
            "server.service.type",
            "server.service.servicePort",
            "server.podAntiAffinity",
            "server.resources",
            "server.containerSecurityContext",
            "server.namespaces",
            "server.useExistingClusterRoleName",
            *("server.extraInitContainers", "server.extraVolumes", "server.extraVolumeMounts"),
            "serverFiles.recording_rules.yml",
            "extraManifests",
            "scrapeConfigs",
        },
    ),
    # NVIDIA/dcgm-exporter, deployment/values.yaml and templates/daemonset.yaml of 4.8.2
    "dcgm-exporter": (
        "4.8.2",
        {
            *("extraEnv", "arguments", "serviceMonitor.enabled", "tolerations", "affinity", "resources"),
            "customMetrics",
        },
    ),
    # aws/eks-charts, stable/aws-efa-k8s-device-plugin/values.yaml and templates/daemonset.yaml
    "aws-efa-k8s-device-plugin": (
        "v0.5.30",
        {"supportedInstanceLabels.keys", "supportedInstanceLabels.values", "tolerations", "resources"},
    ),
    # NVIDIA/k8s-device-plugin v0.20.0, deployments/helm/nvidia-device-plugin/values.yaml and
    # templates/daemonset-device-plugin.yml
    "nvidia-device-plugin": ("0.20.0", {"affinity.nodeAffinity", "mofedEnabled", "tolerations", "resources"}),
    # aws-neuron/neuron-helm-charts at 8ca1e5c, charts/neuron-helm-chart/values.yaml
    "neuron-helm-chart": (
        "1.10.0",
        {
            "neuronInstances",
            "devicePlugin.tolerations",
            "devicePlugin.resources",
            "npd.enabled",
            "scheduler.enabled",
            "scheduler.resources",
            "scheduler.customScheduler.fullnameOverride",
            "scheduler.customScheduler.image.tag",
            "scheduler.customScheduler.resources",
        },
    ),
    # ai-dynamo/dynamo, chart version 1.3.0, deploy/helm/charts/platform/values.yaml
    "dynamo-platform": (
        "1.6.0",
        {
            "global.nats.install",
            "global.etcd.install",
            "global.grove.install",
            "global.kai-scheduler.install",
            "dynamo-operator.discoveryBackend",
        },
    ),
    # kubernetes-sigs/lws v0.9.0, charts/lws/values.yaml
    "lws": ("0.11.1", {"replicaCount", "resources"}),
}
VARIABLES: dict[str, dict[str, Any]] = {
    "keda": {
        "cluster_name": "quickstart",
        "namespace": "inference",
        "scaled_kinds": [("nvidia.com", "dynamographdeploymentscalingadapters")],
        "service_account": "keda-scaler",
    },
    "kueue": {"namespace": "inference"},
    "prometheus": {
        "namespace": "inference",
        "gpu_namespace": "monitoring",
        "keda_namespace": "keda",
        "size": PrometheusSize(0).quantities,
        "dropped": "python_.+",
        "platform": "quickstart",
        "rules": {"groups": []},
        "certificate": prometheus_certificate("arn:aws:secretsmanager:us-west-2:111122223333:secret:x"),
        "door": scraped_door(small_plan()),
    },
    "dcgm-exporter": {"finds_faults": True},
    "neuron-helm-chart": {
        "instance_types": ["trn2.48xlarge"],
        "shares_nodes": True,
        "scheduler_tag": "v1.35.6-eks-1-35-13",
    },
    "dynamo-platform": {"spans_nodes": True},
    "karpenter": {
        "cluster_name": "quickstart",
        "interruption_queue": "queue",
        "keeps_nodes": True,
        "repairs_nodes": True,
        "reboots": True,
    },
    "aws-load-balancer-controller": {"cluster_name": "quickstart", "region": "us-west-2", "vpc_id": "vpc-1"},
}


def paths(values: dict[str, Any], prefix: str = "") -> set[str]:
    found = set()
    for key, value in values.items():
        path = f"{prefix}{key}"
        found |= paths(value, f"{path}.") if isinstance(value, dict) else {path}
    return found


@pytest.mark.parametrize("name", sorted(CHECKED))
def test_only_keys_that_the_chart_reads_are_written(name: str) -> None:
    version, known = CHECKED[name]
    assert charts()[name].version == version, "read the chart's values.yaml again and correct the list"
    for path in paths(chart_values(name, **VARIABLES.get(name, {}))):
        assert any(path == key or path.startswith(f"{key}.") for key in known), path


def test_every_chart_that_is_not_ours_is_checked() -> None:
    assert CHECKED.keys() == {name for name, chart in charts().items() if chart.repository}


@pytest.mark.parametrize("version", shipped().kubernetes_versions)
def test_every_chart_runs_on_every_version_that_a_blueprint_may_name(version: str) -> None:
    def number(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in text.split("."))

    assert [
        chart.name for chart in charts().values() if number(version) < number(chart.minimum_kubernetes)
    ] == []


def test_definitions_are_installed_before_their_controller() -> None:
    order = list(charts())
    assert order.index("karpenter-crd") < order.index("karpenter")
    assert order.index("dynamo-platform") < order.index("dynamo-model")
