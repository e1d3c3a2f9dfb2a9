"""Checks that KV cache is transferred over RDMA: NIXL falls back to slow TCP without an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from inference_blueprints.deployment.check_results import CheckResult
from inference_blueprints.deployment.kubernetes.kubectl import KubectlFailed
from inference_blueprints.deployment.verify.pod_checks import pods_of
from inference_blueprints.deployment.verify.prometheus_metrics import metrics_of, sample_sum
from inference_blueprints.deployment.verify.verified_platform import (
    KubernetesObject,
    RunningPlatform,
    Transferred,
    holds,
)
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.kv_transfer import NIXL_METRICS
from inference_blueprints.serving.types import DeploymentPlan, Process

Verdict = Literal["as planned", "another", "not told"]

#: Log lines that name the back end, one per agent: NIXL's Python interface, which vLLM and SGLang use
#: (``src/api/python/_api.py`` of ai-dynamo/nixl 1.4 and 1.5), SGLang 0.5.21 itself
#: (``srt/disaggregation/nixl/conn.py``), and TensorRT-LLM, which uses NIXL's C++ interface
#: (``cache_transmission/nixl_utils/transferAgent.cpp``).
_NAMED = (
    re.compile(r"Backend (\w+) was instantiated"),
    re.compile(r"NIXL KVManager initialized with backend: (\w+)"),
    re.compile(r"using NIXL backend: (\w+)"),
)


def transfer_back_ends(log: str) -> set[str]:
    """Return the NIXL back ends that a worker's log names, such as ``LIBFABRIC``.

    Parameters
    ----------
    log
        The worker's log from its start.
    """
    return {name for pattern in _NAMED for name in pattern.findall(log)}


def judge(log: str, expected: str) -> Verdict:
    """Return whether a worker transfers KV cache only with the planned back end.

    Parameters
    ----------
    log
        The worker's log from its start.
    expected
        Back end such as ``LIBFABRIC``, which is RDMA over EFA; ``UCX`` on AWS is TCP.
    """
    found = transfer_back_ends(log)
    if not found:
        return "not told"
    return "as planned" if found == {expected} else "another"


def transferred(running: RunningPlatform) -> dict[str, Transferred]:
    """Return the KV transfers of each deployment so far, by release.

    Deployments without readable metrics are left out.
    """
    found = {}
    for deployment in running.deployments:
        if deployment.kv_transfer is None:
            continue
        try:
            count = transfers_of(running, deployment, pods_of(running, deployment))
        except KubectlFailed:
            continue
        if count is not None:
            found[deployment.release] = count
    return found


def kv_transfer(running: RunningPlatform) -> Iterator[CheckResult]:
    """Check the workers' logs and transfer metrics of disaggregated deployments.

    Parameters
    ----------
    running
        The platform, after requests to its models, which cause the transfers.
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
) -> Iterator[CheckResult]:
    """Check the log of every ready worker of a role."""
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
            f"{name}: does not use {expected} but falls back to TCP, which is about a hundred times slower: "
            f"{pods_told}; check that the pool's nodes can allocate EFA interfaces and that the image has "
            "libfabric, then restart the workers"
        )
        command = (
            f"kubectl logs --namespace {namespace} {verdicts['another'][0]} | grep -i -e nixl -e libfabric"
        )
        yield CheckResult("KV transfer", "error", message, command)
    if verdicts["not told"]:
        message = f"{name}: the log of {', '.join(verdicts['not told'])} no longer has its first lines"
        yield CheckResult("KV transfer", "unknown", f"{message}; restart a worker to check it")
    if verdicts["as planned"]:
        message = f"{name}: {len(verdicts['as planned'])} workers use {expected}"
        yield CheckResult("KV transfer", "ok", message)


def _moved(
    running: RunningPlatform, deployment: DeploymentPlan, pods: dict[str, list[KubernetesObject]]
) -> Iterator[CheckResult]:
    """Check the transfers since the first request of this check."""
    name = deployment.release
    now = transfers_of(running, deployment, pods)
    if now is None:
        yield CheckResult("KV transfer", "unknown", f"{name}: its workers have no transfer metrics")
        return
    before = running.transferred.get(name, Transferred(0.0, 0.0))
    moved, failed = now.moved_bytes - before.moved_bytes, now.failures - before.failures
    if failed > 0:
        message = (
            f"{name}: {failed:.0f} transfers failed during the check, {moved:,.0f} bytes were transferred"
        )
        yield CheckResult("KV transfer", "error", message, _look_command(running, deployment))
    elif moved <= 0:
        message = (
            f"{name}: no KV cache was transferred during the check; decode workers compute prompts "
            "themselves, or the prompts are too short"
        )
        yield CheckResult("KV transfer", "error", message, _look_command(running, deployment))
    elif now.failures:
        message = f"{name}: {moved:,.0f} bytes were transferred during the check"
        yield CheckResult("KV transfer", "warning", f"{message}; {now.failures:.0f} transfers failed before")
    else:
        message = f"{name}: {moved:,.0f} bytes were transferred during the check, and no transfer failed"
        yield CheckResult("KV transfer", "ok", message)


def transfers_of(
    running: RunningPlatform, deployment: DeploymentPlan, pods: dict[str, list[KubernetesObject]]
) -> Transferred | None:
    """Add up the transfer metrics of a deployment's workers; None if none has them."""
    moved: list[float] = []
    failures = seconds = transfers = 0.0
    for process in deployment.workers:
        if process.engine is None:
            continue
        counters = ENGINES[process.engine.engine].transfer_counters
        for pod in pods[process.name]:
            page = "\n".join(metrics_of(running, deployment.release, pod, port) for port in _ports(process))
            found = [sample_sum(page, name) for name in counters.moved]
            moved += [value for value in found if value is not None]
            failures += sum(sample_sum(page, name) or 0.0 for name in counters.failed)
            seconds += sample_sum(page, counters.seconds or "-") or 0.0
            transfers += sample_sum(page, counters.transfers or "-") or 0.0
    return Transferred(sum(moved), failures, seconds, transfers) if moved else None


def _ports(process: Process) -> list[int]:
    """Return the metrics ports of a worker: its readiness port, and NIXL's port if it has one."""
    names = {process.probes.readiness.port, NIXL_METRICS.name}
    return [port.number for port in process.ports if port.name in names]


def _look_command(running: RunningPlatform, deployment: DeploymentPlan) -> str:
    """Return the command that shows the workers' log lines about NIXL."""
    labels = f"app.kubernetes.io/instance={deployment.release}"
    namespace = running.namespace(deployment.release)
    return (
        f"kubectl logs --namespace {namespace} --selector {labels} --container main --tail -1 | grep -i nixl"
    )
