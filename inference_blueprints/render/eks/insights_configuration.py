"""Configuration of the CloudWatch observability add-on: what its agents collect.

The keys are those of the add-on's chart (aws-observability/helm-charts v6.4.0,
charts/amazon-cloudwatch-observability/values.yaml and its templates), which the add-on installs. The agent of
each node scrapes the exporter of GPUs of its own node. What Prometheus records is read by the agent of the
cluster, which is one pod. Nobody asks CloudWatch for the series of engines and frontends, so none are sent.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from inference_blueprints.render.collector import (
    SCRAPE_SECONDS,
    kept_gpu_series,
    platform_collector,
    received_traces,
    recorded_job,
)
from inference_contracts.metric_labels import GPU_JOB, PROMETHEUS_ADDRESS

#: Names that the chart gives its agents.
_NODE_AGENT = "cloudwatch-agent"
_CLUSTER_AGENT = "cloudwatch-agent-cluster-scraper"


def insights_configuration(
    *, region: str, cluster_name: str, gpu_namespace: str | None, traces: bool
) -> dict[str, Any]:
    """Return the configuration values of the add-on.

    region: Region of the platform.
    cluster_name: Name of the cluster, which every metric carries.
    gpu_namespace: Namespace of the exporter of GPU metrics. None if no node has NVIDIA accelerators.
    traces: Whether the agent accepts traces, on the ports of OTLP.
    """
    agent: dict[str, Any] = {"name": _NODE_AGENT}
    if gpu_namespace:
        jobs = [_gpu_job(gpu_namespace, cluster_name)]
        agent["otelConfig"] = platform_collector(region, cluster_name, jobs)
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


def _gpu_job(namespace: str, platform: str) -> dict[str, Any]:
    """Return the job of the exporter of GPU metrics on the agent's own node.

    The API server selects the pods. Without the selector, each of a thousand agents watches the pods of all
    nodes: 344 MB of memory instead of 39 with 7,816 pods.
    https://prometheus.io/docs/prometheus/latest/configuration/configuration/#kubernetes_sd_config (selectors)
    """
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
    return {
        "job_name": GPU_JOB,
        "scrape_interval": f"{SCRAPE_SECONDS}s",
        "kubernetes_sd_configs": [
            {
                "role": "pod",
                "namespaces": {"names": [namespace]},
                "selectors": [{"role": "pod", "field": "spec.nodeName=${env:K8S_NODE_NAME}"}],
            }
        ],
        "relabel_configs": [exporter, node, of_platform],
        **kept_gpu_series(),
    }
