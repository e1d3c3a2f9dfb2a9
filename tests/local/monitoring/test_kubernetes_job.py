"""A real Prometheus keeps two metrics of kube-state-metrics, with the labels that rules ask for.

The lines are written, with the names and labels that kube-state-metrics documents:
https://github.com/kubernetes/kube-state-metrics/blob/v2.19.1/docs/metrics/workload
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from inference_blueprints.render.eks.chart_values import chart_values
from inference_blueprints.render.eks.prometheus_size import PrometheusSize
from inference_contracts.metric_labels import KUBERNETES_JOB
from inference_local.processes.child_processes import ProcessGroup
from inference_local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget
from tests.local.monitoring.exporters import PLATFORM, served_file

_LINES = """\
kube_horizontalpodautoscaler_status_desired_replicas{namespace="inference",horizontalpodautoscaler="keda-hpa-chat-main-worker"} 3
kube_horizontalpodautoscaler_status_desired_replicas{namespace="inference",horizontalpodautoscaler="keda-hpa-code-main-vllm-decode"} 2
kube_horizontalpodautoscaler_status_desired_replicas{namespace="shop",horizontalpodautoscaler="keda-hpa-chat-main-worker"} 9
kube_horizontalpodautoscaler_spec_max_replicas{namespace="inference",horizontalpodautoscaler="keda-hpa-chat-main-worker"} 6
kube_pod_status_ready{namespace="inference",pod="chat-0",uid="1",condition="true"} 1
kube_pod_status_ready{namespace="inference",pod="chat-0",uid="1",condition="false"} 0
kube_pod_status_ready{namespace="shop",pod="basket-0",uid="2",condition="true"} 1
kube_pod_status_phase{namespace="inference",pod="chat-0",uid="1",phase="Running"} 1
"""  # noqa: E501 -- lines of the format


def test_two_metrics_of_the_models_are_kept(tmp_path: Path) -> None:
    (tmp_path / "state.prom").write_text(_LINES, encoding="utf-8")
    values = chart_values(
        "prometheus",
        size=PrometheusSize(0).quantities,
        namespace="inference",
        gpu_namespace=None,
        keda_namespace=None,
        dropped="python_.+",
        certificate=None,
        door=None,
        platform=PLATFORM,
        rules={"groups": []},
    )
    job = {"metric_relabel_configs": values["scrapeConfigs"][KUBERNETES_JOB]["metric_relabel_configs"]}
    with served_file("state.prom", tmp_path) as url, ProcessGroup() as processes:
        prometheus = LocalPrometheus(tmp_path / "prometheus", processes, lambda _: None)
        prometheus.start([ScrapeTarget(url, {}, KUBERNETES_JOB)], relabelling={KUBERNETES_JOB: job})
        instance = urlsplit(url).netloc
        wanted = prometheus.wait_for(
            f'kube_horizontalpodautoscaler_status_desired_replicas{{instance="{instance}"}}'
        )
        kept = {
            sample.labels["__name__"]
            for sample in prometheus.query(f'{{instance="{instance}",__name__=~"kube_.+"}}')
        }
        ready = prometheus.query("kube_pod_status_ready")
        reachable = prometheus.query(f'up{{instance="{instance}"}}')
    assert {(each.labels["release"], each.labels["role"], each.value) for each in wanted} == {
        ("chat-main", "worker", 3),
        ("code-main", "decode", 2),
    }
    assert {each.labels["platform"] for each in (*wanted, *ready)} == {PLATFORM}
    assert [(each.labels["pod"], each.labels["condition"]) for each in ready] == [("chat-0", "true")]
    assert kept == {"kube_horizontalpodautoscaler_status_desired_replicas", "kube_pod_status_ready"}
    # Without the platform's label, a server that does not answer is not among the platform's programs.
    assert "platform" not in reachable[0].labels
