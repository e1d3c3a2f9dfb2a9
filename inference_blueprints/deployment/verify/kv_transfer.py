"""Whether KV cache really moves over RDMA: NIXL falls back to TCP without an error, far slower."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from inference_blueprints.deployment.kubectl import KubectlFailed
from inference_blueprints.deployment.observation import Observation
from inference_blueprints.deployment.verify.pods import pods_of
from inference_blueprints.deployment.verify.subject import KubernetesObject, RunningPlatform, holds
from inference_blueprints.serving.types import DeploymentPlan, Process

Verdict = Literal["as planned", "another", "not told"]

#: What NIXL logs once a worker (https://docs.nvidia.com/dynamo, "EFA (RDMA over AWS Fabric) on EKS").
_INSTANTIATED = re.compile(r"Backend (\w+) was instantiated")
#: vLLM's counts of KV transfers by NIXL (https://docs.vllm.ai, "Production Metrics").
_BYTES = "vllm:nixl_bytes_transferred_sum"
_FAILED = "vllm:nixl_num_failed_transfers_total"


def transfer_back_ends(log: str) -> set[str]:
    """Return the NIXL back ends that a worker's log names, such as ``LIBFABRIC``.

    Parameters
    ----------
    log
        The worker's log from its start.
    """
    return set(_INSTANTIATED.findall(log))


def judge(log: str, expected: str) -> Verdict:
    """Say whether a worker moves KV cache by the planned back end and no other.

    Parameters
    ----------
    log
        The worker's log from its start.
    expected
        Such as ``LIBFABRIC``, which is RDMA over EFA; ``UCX`` on AWS is TCP.
    """
    found = transfer_back_ends(log)
    if not found:
        return "not told"
    return "as planned" if found == {expected} else "another"


def sample_sum(metrics: str, name: str) -> float | None:
    """Return a metric added up over its labels; None where it is not exposed.

    Parameters
    ----------
    metrics
        Prometheus' text format.
    name
        The sample's full name.
    """
    pattern = re.compile(rf"^{re.escape(name)}(?:\{{[^\n]*\}})? (\S+)", re.MULTILINE)
    values = [float(value) for value in pattern.findall(metrics)]
    return sum(values) if values else None


def kv_transfer(running: RunningPlatform) -> Iterator[Observation]:
    """Read the workers' logs, and their counts of what was moved, where prefill and decode are apart.

    Parameters
    ----------
    running
        The platform, after its models were asked: before that nothing is moved.
    """
    for deployment in running.deployments:
        if deployment.kv_transfer is None:
            continue
        found = pods_of(running, deployment)
        for process in deployment.workers:
            ready = [pod for pod in found[process.name] if holds(pod, "Ready")]
            yield from _back_end(running, deployment, process, ready)
        yield from _moved(running, deployment, found)


def _back_end(
    running: RunningPlatform, deployment: DeploymentPlan, process: Process, pods: list[KubernetesObject]
) -> Iterator[Observation]:
    """Judge the log of every ready worker of a role."""
    expected = (deployment.kv_transfer or "").upper()
    name = f"{deployment.release}/{process.name}"
    namespace = running.namespace(deployment.release)
    verdicts: dict[Verdict, list[str]] = {"as planned": [], "another": [], "not told": []}
    for pod in pods:
        pod_name = pod["metadata"]["name"]
        log = running.kubectl.run("logs", "--namespace", namespace, pod_name, "--container", "main")
        verdicts[judge(log, expected)].append(pod_name)
    if verdicts["another"]:
        pods_told = ", ".join(verdicts["another"])
        message = (
            f"{name}: not by {expected}, which falls back to TCP in silence: {pods_told}; look for the reason"
        )
        command = (
            f"kubectl logs --namespace {namespace} {verdicts['another'][0]} | grep -i -e nixl -e libfabric"
        )
        yield Observation("KV transfer", "error", message, command)
    if verdicts["not told"]:
        message = f"{name}: the log of {', '.join(verdicts['not told'])} does not begin at its start any more"
        yield Observation("KV transfer", "unknown", f"{message}; restart a worker to know")
    if verdicts["as planned"]:
        message = f"{name}: {len(verdicts['as planned'])} workers instantiated {expected}"
        yield Observation("KV transfer", "ok", message)


def _moved(
    running: RunningPlatform, deployment: DeploymentPlan, pods: dict[str, list[KubernetesObject]]
) -> Iterator[Observation]:
    """Add up what the workers of a deployment say that they moved, and what failed."""
    moved, failed, told = 0.0, 0.0, False
    for process in deployment.workers:
        # Where a worker says that it is ready it counts, too.
        health = process.probes.readiness.port
        port = next(port.number for port in process.ports if port.name == health)
        for pod in pods[process.name]:
            metrics = _metrics(running, deployment, pod, port)
            found = sample_sum(metrics, _BYTES)
            told = told or found is not None
            moved += found or 0.0
            failed += sample_sum(metrics, _FAILED) or 0.0
    name = deployment.release
    if not told:
        yield Observation("KV transfer", "unknown", f"{name}: its workers do not count what they move")
    elif failed:
        yield Observation(
            "KV transfer",
            "error",
            f"{name}: {failed:.0f} transfers have failed, {moved:,.0f} bytes were moved",
        )
    elif not moved:
        message = f"{name}: nothing has been moved yet: decode workers compute their prompts themselves"
        yield Observation("KV transfer", "error", message)
    else:
        yield Observation(
            "KV transfer", "ok", f"{name}: {moved:,.0f} bytes were moved and no transfer failed"
        )


def _metrics(running: RunningPlatform, deployment: DeploymentPlan, pod: KubernetesObject, port: int) -> str:
    """Return a worker's metrics, through the API server; nothing where it does not answer."""
    namespace = running.namespace(deployment.release)
    path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}:{port}/proxy/metrics"
    try:
        return running.kubectl.run("get", "--raw", path)
    except KubectlFailed:
        return ""
