"""What the programs of a platform count, in Prometheus' text format."""

from __future__ import annotations

import re

from inference_blueprints.deployment.kubernetes.kubectl import KubectlFailed
from inference_blueprints.deployment.verify.verified_platform import KubernetesObject, RunningPlatform


def sample_sum(metrics: str, name: str, label: str = "") -> float | None:
    """Return a metric added up over its labels; None where it is not exposed.

    Parameters
    ----------
    name
        The sample's full name.
    label
        Only samples with this label, such as ``status="failure"``; all where it is empty.
    """
    pattern = re.compile(rf"^{re.escape(name)}(\{{[^\n]*\}})? (\S+)", re.MULTILINE)
    values = [float(value) for labels, value in pattern.findall(metrics) if label in labels]
    return sum(values) if values else None


def metrics_of(running: RunningPlatform, release: str, pod: KubernetesObject, port: int) -> str:
    """Return what a pod counts, through the API server; nothing where it does not answer.

    Parameters
    ----------
    pod
        As the API server holds it.
    port
        Where it answers ``/metrics``.
    """
    path = f"/api/v1/namespaces/{running.namespace(release)}/pods/{pod['metadata']['name']}:{port}"
    try:
        return running.kubectl.run("get", "--raw", f"{path}/proxy/metrics")
    except KubectlFailed:
        return ""
