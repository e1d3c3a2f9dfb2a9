"""Recorded output of exporters, scraped by a real Prometheus as the rendered scrape configuration says."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from inference_blueprints.render.eks.chart_values import chart_values
from inference_blueprints.render.eks.prometheus_size import PrometheusSize
from inference_contracts.metric_labels import GPU_JOB, KEDA_JOB
from inference_local.processes.child_processes import ProcessGroup
from inference_local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget

FOLDER: Final = Path(__file__).parent / "recorded"
SOURCES: Final[Sequence[Mapping[str, str]]] = yaml.safe_load((FOLDER / "sources.yaml").read_text("utf-8"))
PLATFORM: Final = "quickstart"
#: Labels that Prometheus adds to each series to tell targets apart. Rules do not keep them.
_OF_THE_TARGET: Final = ("__name__", "job", "instance")
#: Labels of the exporters' pods: dcgm-exporter 4.8.2, deployment/templates/daemonset.yaml and _helpers.tpl;
#: KEDA's chart 2.20.2, keda/templates/manager/deployment.yaml.
_PODS: Final[Mapping[str, Mapping[str, str]]] = {
    GPU_JOB: {"pod_label_app_kubernetes_io_name": "dcgm-exporter"},
    KEDA_JOB: {"pod_label_app": "keda-operator"},
}
#: Labels that Karpenter and EKS put on nodes.
_NODE: Final[Mapping[str, str]] = {
    "node_label_karpenter_sh_nodepool": "l40s",
    "node_label_node_kubernetes_io_instance_type": "g6e.2xlarge",
    "node_label_karpenter_sh_capacity_type": "on-demand",
}


@dataclass(frozen=True, slots=True)
class Scraped:
    """A series of a scraped file, with the labels that it has in the cluster's Prometheus."""

    name: str
    labels: Mapping[str, str]
    value: float

    @property
    def notation(self) -> str:
        """Name and labels in the notation of Prometheus' unit tests."""
        pairs = ",".join(f'{name}="{value}"' for name, value in sorted(self.labels.items()))
        return f"{self.name}{{{pairs}}}"


def relabelling() -> Mapping[str, Mapping[str, Any]]:
    """Return what the rendered jobs of exporters do with labels."""
    values = chart_values(
        "prometheus",
        size=PrometheusSize(0).quantities,
        namespace="inference",
        gpu_namespace="monitoring",
        keda_namespace="keda",
        dropped="python_.+",
        certificate=None,
        door=None,
        platform=PLATFORM,
        rules={"groups": []},
    )
    return {
        job: {key: value for key, value in settings.items() if key != "kubernetes_sd_configs"}
        for job, settings in values["scrapeConfigs"].items()
        if job in _PODS
    }


def scraped(directory: Path, files: Mapping[str, str]) -> Mapping[str, Sequence[Scraped]]:
    """Scrape files as if their exporters ran in the cluster, and return the series of each.

    files: Names of files, with the job of each.
    """
    with served_files(files) as targets, ProcessGroup() as processes:
        prometheus = LocalPrometheus(directory, processes, lambda _: None)
        prometheus.start(targets.values(), relabelling=relabelling())
        return {
            file: [
                Scraped(
                    sample.labels["__name__"],
                    {name: value for name, value in sample.labels.items() if name not in _OF_THE_TARGET},
                    sample.value,
                )
                for sample in prometheus.wait_for(f'{{instance="{urlsplit(target.url).netloc}"}}')
            ]
            for file, target in targets.items()
        }


@contextmanager
def served_files(files: Mapping[str, str]) -> Iterator[Mapping[str, ScrapeTarget]]:
    """Serve recorded files on loopback, each as a pod of its job on a node of its own."""
    with ExitStack() as stack:
        yield {
            file: ScrapeTarget(
                stack.enter_context(served_file(file)), _meta_labels(job, node=f"node-{number}"), job
            )
            for number, (file, job) in enumerate(files.items(), start=1)
        }


def _meta_labels(job: str, *, node: str) -> Mapping[str, str]:
    found = {**_PODS[job], **_NODE, "pod_node_name": node, "pod_container_port_name": "metrics"}
    return {f"__meta_kubernetes_{name}": value for name, value in found.items()}


class _Handler(SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012 -- as its base declares it
        ".prom": "text/plain; version=0.0.4"
    }

    def log_message(self, *_: object) -> None:
        """Write no log."""


@contextmanager
def served_file(file: str, folder: Path = FOLDER) -> Iterator[str]:
    """Serve a file on loopback, by default a recorded one."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/{file}"
        finally:
            server.shutdown()
            thread.join()
