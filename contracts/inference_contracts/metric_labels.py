"""Labels that every metric of a serving pod carries, in the cluster and on this machine.

Prometheus sets them on the scraped target, so they exist whatever the program itself reports. In the cluster,
``kubernetes_sd_configs`` copies them from the pod's labels and fields; locally, the scrape configuration
lists them. Queries select and group only by these labels and by labels of the metric itself, so that the same
query runs in both places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

#: What a serving process does in its release: values of the label ``role``.
ROLES: Final = ("frontend", "worker", "prefill", "decode")
#: Roles of processes that hold accelerators.
WORKER_ROLES: Final = ("worker", "prefill", "decode")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLabels:
    """The labels of one scraped serving pod. The attributes are the names of the labels."""

    platform: str
    """`metadata.name` of the blueprint."""
    model: str
    """Name of the model in the blueprint."""
    release: str
    """Name of the Helm release, such as ``qwen3-8b-main``."""
    role: str
    """One of `ROLES`."""
    pool: str
    """Name of the pool that the pod runs on. Frontends on system nodes have ``system``."""
    pod: str
    """Name of the pod, or of the process on this machine."""
    node: str
    """Name of the node, or of this machine."""

    def as_mapping(self) -> Mapping[str, str]:
        """Return the labels by name, as a scrape configuration lists them."""
        return asdict(self)


#: Pool of pods that run on the system nodes.
SYSTEM_POOL: Final = "system"
#: Where Prometheus finds the value of each label in a cluster: the meta label of `kubernetes_sd_configs`
#: (role ``pod``). The pod labels ``inference-blueprints/<name>`` are set by our charts.
#: https://prometheus.io/docs/prometheus/latest/configuration/configuration/#pod
POD_LABEL_PREFIX: Final = "inference-blueprints/"
#: Label of a serving pod with the number of the port that has its metrics: each pod is one target.
METRICS_PORT_LABEL: Final = f"{POD_LABEL_PREFIX}metrics-port"
METRICS_PORT_SOURCE: Final = "__meta_kubernetes_pod_label_inference_blueprints_metrics_port"
#: Label of pods whose metrics are behind TLS, with the scheme of their address.
METRICS_SCHEME_LABEL: Final = f"{POD_LABEL_PREFIX}metrics-scheme"
METRICS_SCHEME_SOURCE: Final = "__meta_kubernetes_pod_label_inference_blueprints_metrics_scheme"
#: Labels of a target that come from labels of the pod.
POD_LABELS: Final = ("platform", "model", "release", "role", "pool")
CLUSTER_SOURCES: Final[Mapping[str, str]] = {
    **{name: f"__meta_kubernetes_pod_label_inference_blueprints_{name}" for name in POD_LABELS},
    "pod": "__meta_kubernetes_pod_name",
    "node": "__meta_kubernetes_pod_node_name",
}
#: Labels of exporters that run once per node, besides ``platform``. The job needs
#: ``attach_metadata: {node: true}``.
NODE_SOURCES: Final[Mapping[str, str]] = {
    "pool": "__meta_kubernetes_node_label_karpenter_sh_nodepool",
    "instance_type": "__meta_kubernetes_node_label_node_kubernetes_io_instance_type",
    "purchase": "__meta_kubernetes_node_label_karpenter_sh_capacity_type",
    "node": "__meta_kubernetes_pod_node_name",
}
#: Names of recorded series: what CloudWatch stores of them, as a regular expression.
RECORDED_SERIES: Final = "(serving|pool|model|platform|node|worker)_.+"
#: Series of NVIDIA's exporter that something asks CloudWatch for: GPU health, and a runbook. Agents send no
#: others, and none of engines and frontends: alarms, dashboards and controllers ask for recorded series, and
#: KEDA asks the cluster's Prometheus. Fields: https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html
GPU_SERIES: Final = (
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_XID_ERRORS",
)
#: Jobs of the cluster's Prometheus, by what they scrape.
SERVING_JOB: Final = "serving"
GPU_JOB: Final = "gpu"
KEDA_JOB: Final = "keda"
KUBERNETES_JOB: Final = "kubernetes"
#: kube-state-metrics of the CloudWatch add-on, with the add-on's own certificate: see
#: templates/linux/kube-state-metrics.yaml of its chart, aws-observability/helm-charts v6.4.0.
KUBERNETES_EXPORTER: Final = "kube-state-metrics.amazon-cloudwatch.svc:8443"
#: Names of the HorizontalPodAutoscalers of elastic workers: KEDA's prefix, release, and role. Workers of
#: llm-d have ``vllm-`` before the role.
AUTOSCALER_NAMES: Final = f"keda-hpa-(.+?)-(?:vllm-)?({'|'.join(WORKER_ROLES)})"
#: Job of the CloudWatch agent that reads recorded series from the cluster's Prometheus.
RECORDED_JOB: Final = "recorded"
#: The cluster's Prometheus, which KEDA asks: chart ``prometheus``, release and namespace of this name.
PROMETHEUS_NAMESPACE: Final = "monitoring"
PROMETHEUS_ADDRESS: Final = "http://prometheus-server.monitoring.svc:80"
#: Label of serving pods, and of nodes of some pools, with the name of the pool.
POOL_LABEL_OF_PODS: Final = f"{POD_LABEL_PREFIX}pool"
#: Label of serving pods with the name of the Helm release. Pods without it do not serve.
RELEASE_LABEL_OF_PODS: Final = f"{POD_LABEL_PREFIX}release"
ROLE_LABEL_OF_PODS: Final = f"{POD_LABEL_PREFIX}role"
