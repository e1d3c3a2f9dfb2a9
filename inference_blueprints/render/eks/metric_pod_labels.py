"""Labels of serving pods from which Prometheus takes the labels of their metrics."""

from __future__ import annotations

from collections.abc import Mapping

from inference_blueprints.serving.types import DeploymentPlan, Process
from inference_contracts.metric_labels import METRICS_PORT_LABEL, POD_LABEL_PREFIX, SYSTEM_POOL


def metric_labels(deployment: DeploymentPlan, process: Process, platform: str) -> Mapping[str, str]:
    """Return the labels of a process's pods, as the contract on metric labels names them.

    Parameters
    ----------
    deployment
        The deployment of the process.
    process
        The process.
    platform
        `metadata.name`.

    Raises
    ------
    ValueError
        If a router of llm-d has no port of metrics, or several.
    """
    labels = {
        "platform": platform,
        "model": deployment.model,
        "release": deployment.release,
        "role": process.role,
        "pool": process.pool or SYSTEM_POOL,
    }
    return {
        **{f"{POD_LABEL_PREFIX}{name}": value for name, value in labels.items()},
        METRICS_PORT_LABEL: str(_metrics_port(deployment, process)),
    }


def _metrics_port(deployment: DeploymentPlan, process: Process) -> int:
    """Return the port of a process's metrics: its first, or the endpoint picker's own beside a proxy."""
    if deployment.picker is None or process.is_worker:
        return process.ports[0].number
    ports = [port for sidecar in process.sidecars for port in sidecar.ports if port.name == "metrics"]
    if len(ports) != 1:
        raise ValueError(
            f"'{deployment.release}' has {len(ports)} ports of an endpoint picker's metrics, not 1"
        )
    return ports[0].number
