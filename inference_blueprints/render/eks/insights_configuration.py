"""Configuration of the CloudWatch observability add-on: what its agents collect.

The keys are those of the add-on's chart (aws-observability/helm-charts v6.4.0,
charts/amazon-cloudwatch-observability/values.yaml and its templates), which the add-on installs. The agent of
each node scrapes the pods of its own node, so that every pod is scraped once. What Prometheus records is read
by the agent of the cluster, which is one pod.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from inference_blueprints.render.collector import (
    SCRAPE_SECONDS,
    platform_collector,
    received_traces,
    recorded_job,
)
from inference_catalog.catalogue import shipped
from inference_contracts.metric_labels import (
    CLUSTER_SOURCES,
    GPU_JOB,
    METRICS_PORT_SOURCE,
    PROMETHEUS_ADDRESS,
    SERVING_JOB,
)

#: Names that the chart gives its agents.
_NODE_AGENT = "cloudwatch-agent"
_CLUSTER_AGENT = "cloudwatch-agent-cluster-scraper"


def insights_configuration(
    *, region: str, cluster_name: str, namespace: str, gpu_namespace: str | None, traces: bool
) -> dict[str, Any]:
    """Return the configuration values of the add-on.

    region: Region of the platform.
    cluster_name: Name of the cluster, which every metric carries.
    namespace: Namespace of the models.
    gpu_namespace: Namespace of the exporter of GPU metrics. None if no node has NVIDIA accelerators.
    traces: Whether the agent accepts traces, on the ports of OTLP.
    """
    node_jobs = [_serving_job(namespace)]
    if gpu_namespace:
        node_jobs.append(_gpu_job(gpu_namespace, cluster_name))
    agent: dict[str, Any] = {
        "name": _NODE_AGENT,
        "otelConfig": platform_collector(region, cluster_name, node_jobs),
    }
    cluster_agent = {
        "name": _CLUSTER_AGENT,
        "mode": "deployment",
        "config": "default",
        "otelConfig": platform_collector(
            region, cluster_name, [recorded_job(urlsplit(PROMETHEUS_ADDRESS).netloc)]
        ),
    }
    if traces:
        agent["config"] = {"agent": {"region": region}, "traces": received_traces()}
    return {
        # The older pipeline would report, and bill, each metric a second time.
        "containerInsights": {"enabled": False},
        "applicationSignals": {"enabled": False},
        # Fluent Bit keeps its place in each file while it restarts, the agent's own pipeline does not.
        "containerLogs": {"enabled": True},
        "otelContainerInsights": {
            "enabled": True,
            "logs": {"enabled": False},
            "metricResolution": f"{SCRAPE_SECONDS}s",
        },
        # It has a DCGM engine of its own, and a node must have one: that of the node monitoring agent.
        "dcgmExporter": {"enabled": False},
        "agents": [agent, cluster_agent],
    }


def _job(name: str, namespace: str, relabel: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a job that scrapes the pods of a namespace on the agent's own node."""
    on_node = {
        "action": "keep",
        "source_labels": ["__meta_kubernetes_pod_node_name"],
        "regex": "${env:K8S_NODE_NAME}",
    }
    return {
        "job_name": name,
        "scrape_interval": f"{SCRAPE_SECONDS}s",
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [namespace]}}],
        "relabel_configs": [on_node, *relabel],
    }


def _serving_job(namespace: str) -> dict[str, Any]:
    """Return the job of serving pods, with the labels and without the metrics that Prometheus has."""
    one_port = {
        "action": "keepequal",
        "source_labels": ["__meta_kubernetes_pod_container_port_number"],
        "target_label": METRICS_PORT_SOURCE,
    }
    labels = [
        {"action": "replace", "source_labels": [source], "target_label": name}
        for name, source in CLUSTER_SOURCES.items()
    ]
    dropped = shipped().serving_metrics.dropped_names
    return {
        **_job(SERVING_JOB, namespace, [one_port, *labels]),
        "metric_relabel_configs": [{"action": "drop", "source_labels": ["__name__"], "regex": dropped}],
    }


def _gpu_job(namespace: str, platform: str) -> dict[str, Any]:
    """Return the job of the exporter of GPU metrics."""
    exporter = {
        "action": "keep",
        "source_labels": [
            "__meta_kubernetes_pod_label_app_kubernetes_io_name",
            "__meta_kubernetes_pod_container_port_name",
        ],
        "regex": "dcgm-exporter;metrics",
    }
    node = {
        "action": "replace",
        "source_labels": ["__meta_kubernetes_pod_node_name"],
        "target_label": "node",
    }
    of_platform = {"action": "replace", "target_label": "platform", "replacement": platform}
    return _job(GPU_JOB, namespace, [exporter, node, of_platform])
