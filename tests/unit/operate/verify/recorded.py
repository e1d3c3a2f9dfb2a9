"""A cluster as its API server would tell it: objects by kind, logs and metrics by pod."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
from dataclasses import dataclass, field
from typing import Any

from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_blueprints.operate.verify.synthesised_platform import ExpectedRelease

KubernetesObject = dict[str, Any]
RELEASE = "qwen3-32b-main"
EFA = "vpc.amazonaws.com/efa"
LOG = "loading\nNIXL INFO _api.py:369 Backend LIBFABRIC was instantiated\nready\n"
METRICS = (
    'dynamo_component_requests_total{dynamo_component="prefill",dynamo_endpoint="clear_kv_blocks"} 5\n'
    'dynamo_component_requests_total{dynamo_component="prefill",dynamo_endpoint="generate"} 3\n'
    'vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 0.0\n'
    'vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 3.0\n'
    "# TYPE vllm:nixl_bytes_transferred histogram\n"
    'vllm:nixl_bytes_transferred_sum{engine="0",model_name="m"} 1.5e+06\n'
    'vllm:nixl_num_failed_transfers_total{engine="0"} 0.0\n'
    'vllm:nixl_xfer_time_seconds_sum{engine="0"} 0.0003\n'
    'vllm:nixl_xfer_time_seconds_count{engine="0"} 1.0\n'
)


@dataclass
class RecordedCluster:
    """The answers of kubectl."""

    objects: dict[str, list[KubernetesObject]]
    """By kind, as commands name it."""
    logs: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    """`logs`, `metrics`: By pod, or pod and port of metrics; a pod that is not named has those of a healthy
    worker."""
    previous: dict[str, str] = field(default_factory=dict)
    """By pod: the log before the last restart."""
    targets: str = ""
    """Prometheus' answer about its targets; empty if every pod is one and answers."""
    refusal: str | None = None
    """What kubectl says to everything; None where it answers."""

    def get(self, *arguments: str) -> list[KubernetesObject]:
        kind, *options = arguments
        self._refuse()
        given = dict(zip(options[::2], options[1::2], strict=False)) if "--namespace" in options else {}
        wanted = [pair.split("=") for pair in given.get("--selector", "").split(",") if pair]
        return [
            each
            for each in self.objects[kind]
            if given.get("--namespace") in (None, each["metadata"].get("namespace"))
            and all(each["metadata"].get("labels", {}).get(key) == value for key, value in wanted)
        ]

    def run(self, *arguments: str) -> str:
        self._refuse()
        match arguments:
            case ("logs", "--namespace", "inference", pod, "--container", "main"):
                return self.logs.get(pod, LOG)
            case ("logs", "--namespace", "inference", pod, "--container", "main", "--previous"):
                return self.previous.get(pod, "")
            case ("get", "--raw", path) if "/services/prometheus-server:80/" in path:
                return self.targets or scrape_targets(self.objects["pods"])
            case ("get", "--raw", path):
                pod, _, port = path.split("/pods/")[1].removesuffix("/proxy/metrics").partition(":")
                return self.metrics.get(f"{pod}:{port}", self.metrics.get(pod, METRICS))
            case ("get", "namespaces", *_):
                return "namespace/inference\n"
        raise AssertionError(arguments)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        raise KubectlFailed(f"not recorded: {arguments}")

    def _refuse(self) -> None:
        if self.refusal:
            raise KubectlFailed(self.refusal)


def conditions(**statuses: bool | str) -> list[dict[str, str]]:
    """Conditions of a status; a text is the message of one that is false."""
    return [
        {"type": name, "status": "True"}
        if status is True
        else {"type": name, "status": "False", "reason": "Reason", "message": str(status or "no message")}
        for name, status in statuses.items()
    ]


def node(name: str, labels: dict[str, str], allocatable: dict[str, str]) -> KubernetesObject:
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "allocatable": allocatable,
            "conditions": conditions(Ready=True),
            "nodeInfo": {"osImage": "Amazon Linux 2023.9.20261110", "kubeletVersion": "v1.35.2-eks-0a1b2c3"},
        },
    }


def h200(name: str) -> KubernetesObject:
    """A node of the pool of `p5en-disaggregated`."""
    labels = {
        "node.kubernetes.io/instance-type": "p5en.48xlarge",
        "inference-blueprints/pool": "h200",
        "inference-blueprints/efa": "true",
    }
    return node(name, labels, {"nvidia.com/gpu": "8", EFA: "16"})


def pod(name: str, process: str) -> KubernetesObject:
    labels = {"app.kubernetes.io/instance": RELEASE, "app.kubernetes.io/component": process}
    return {
        "metadata": {"name": name, "namespace": "inference", "labels": labels},
        "status": {"phase": "Running", "conditions": conditions(PodScheduled=True, Ready=True)},
    }


def helm_secret(release: ExpectedRelease, *, revision: int = 1, status: str = "deployed") -> KubernetesObject:
    """Helm's record of a revision, packed as Helm packs it."""
    content = {"chart": {"metadata": {"name": release.name, "version": release.version}}}
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(content).encode()))).decode()
    labels = {"owner": "helm", "name": release.name, "status": status, "version": str(revision)}
    name = f"sh.helm.release.v1.{release.name}.v{revision}"
    metadata = {"name": name, "namespace": release.namespace, "labels": labels}
    return {"metadata": metadata, "data": {"release": packed}}


def scrape_targets(pods: list[KubernetesObject], **errors: str) -> str:
    """Return Prometheus' answer about its targets: every pod answers, except those with an error."""
    targets = [
        {
            "labels": {"job": "serving", "pod": each["metadata"]["name"]},
            "health": "down" if each["metadata"]["name"].replace("-", "_") in errors else "up",
            "lastError": errors.get(each["metadata"]["name"].replace("-", "_"), ""),
        }
        for each in pods
    ]
    return json.dumps({"status": "success", "data": {"activeTargets": targets}})


def daemon(name: str, *, wanted: int = 4, ready: int = 4, release: str | None = None) -> KubernetesObject:
    annotations = {"meta.helm.sh/release-name": release} if release else {}
    return {
        "metadata": {"name": name, "namespace": "kube-system", "annotations": annotations},
        "status": {"desiredNumberScheduled": wanted, "numberReady": ready},
    }


def controller(name: str, release: str, *, ready: int = 2) -> KubernetesObject:
    metadata = {"name": name, "annotations": {"meta.helm.sh/release-name": release}}
    return {"metadata": metadata, "spec": {"replicas": 2}, "status": {"readyReplicas": ready}}


def node_pool(name: str, pool: str) -> KubernetesObject:
    template = {
        "metadata": {"labels": {"inference-blueprints/pool": pool}},
        "spec": {"nodeClassRef": {"name": pool}},
    }
    status = {"conditions": conditions(ValidationSucceeded=True, Ready=True)}
    return {"metadata": {"name": name}, "spec": {"template": template}, "status": status}


def node_class(name: str) -> KubernetesObject:
    status = {"conditions": conditions(SubnetsReady=True, AMIsReady=True, Ready=True)}
    return {"metadata": {"name": name}, "status": status}
