"""Metrics of a platform's programs, in Prometheus' text format."""

from __future__ import annotations

import re

from inference_blueprints.deployment.kubernetes.kubectl import KubectlFailed
from inference_blueprints.deployment.verify.verified_platform import KubernetesObject, RunningPlatform


def sample_sum(metrics: str, name: str, label: str = "") -> float | None:
    """Return the sum of a metric over its labels; None if it is not exposed.

    Parameters
    ----------
    name
        Full name of the sample.
    label
        Only samples with this label, such as ``status="failure"``; empty for all.
    """
    pattern = re.compile(rf"^{re.escape(name)}(\{{[^\n]*\}})? (\S+)", re.MULTILINE)
    values = [float(value) for labels, value in pattern.findall(metrics) if label in labels]
    return sum(values) if values else None


def metrics_of(running: RunningPlatform, release: str, pod: KubernetesObject, port: int) -> str:
    """Return the metrics of a pod through the API server; empty if it does not answer.

    Parameters
    ----------
    pod
        The pod from the API server.
    port
        Port of ``/metrics``.
    """
    path = f"/api/v1/namespaces/{running.namespace(release)}/pods/{pod['metadata']['name']}:{port}"
    try:
        return running.kubectl.run("get", "--raw", f"{path}/proxy/metrics")
    except KubectlFailed:
        return ""
