"""Checks the pods of a deployment's processes, and why some are not ready."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.deployment.check_results import CheckResult
from inference_blueprints.deployment.verify.verified_platform import (
    KubernetesObject,
    RunningPlatform,
    condition,
    holds,
)
from inference_blueprints.serving.types import DeploymentPlan, Process

#: Labels that our charts put on pods.
_INSTANCE, _COMPONENT = "app.kubernetes.io/instance", "app.kubernetes.io/component"
#: Number of pods whose reasons are reported; the others are only counted.
_TOLD = 3


def pods_of(running: RunningPlatform, deployment: DeploymentPlan) -> dict[str, list[KubernetesObject]]:
    """Return the pods of a deployment by process, without those that are being deleted."""
    found = running.kubectl.get(
        *("pods", "--namespace", running.namespace(deployment.release)),
        *("--selector", f"{_INSTANCE}={deployment.release}"),
    )
    return {
        process.name: [
            pod
            for pod in found
            if pod["metadata"]["labels"].get(_COMPONENT) == process.name
            and "deletionTimestamp" not in pod["metadata"]
        ]
        for process in deployment.processes
    }


def workers(running: RunningPlatform) -> Iterator[CheckResult]:
    """Check that every process of every deployment has all its pods, ready and without restarts."""
    for deployment in running.deployments:
        found = pods_of(running, deployment)
        for process in deployment.processes:
            yield _process(running, deployment, process, found[process.name])


def _process(
    running: RunningPlatform, deployment: DeploymentPlan, process: Process, pods: list[KubernetesObject]
) -> CheckResult:
    """Check how many pods of a process are ready, why others are not, and which were restarted."""
    name = f"{deployment.release}/{process.name}"
    waiting = [pod for pod in pods if not holds(pod, "Ready")]
    ready = len(pods) - len(waiting)
    message = f"{name}: {ready} of {process.pods} are ready"
    namespace = running.namespace(deployment.release)
    labels = f"{_INSTANCE}={deployment.release},{_COMPONENT}={process.name}"
    command = f"kubectl describe pods --namespace {namespace} --selector {labels}"
    if ready < process.pods:
        reasons = [f"{pod['metadata']['name']}: {unready_reason(pod)}" for pod in waiting[:_TOLD]]
        untold = [f"and {len(waiting) - _TOLD} more"] if len(waiting) > _TOLD else []
        words = "; ".join([*reasons, *untold]) or "the others have no pod"
        return CheckResult("workers", "error", f"{message}; {words}", command)
    restarts = [told for pod in pods for told in _restarts(pod)]
    if restarts:
        return CheckResult("workers", "warning", f"{message}; {'; '.join(restarts)}", command)
    return CheckResult("workers", "ok", message)


def unready_reason(pod: KubernetesObject) -> str:
    """Return why a pod is not ready, according to the scheduler, its containers or its readiness gates.

    Parameters
    ----------
    pod
        The pod from the API server.
    """
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return f"has no node: {scheduled.get('message', scheduled.get('reason'))}"
    status = pod.get("status", {})
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        for kind in ("waiting", "terminated"):
            state = container.get("state", {}).get(kind)
            if state and state.get("reason") not in (None, "Completed", "PodInitializing"):
                return f"{container['name']} is {state['reason']}: {state.get('message', 'no message')}"
    others = [
        f"{each['type']}: {each.get('message') or each.get('reason') or each['status']}"
        for each in status.get("conditions", [])
        if each["status"] != "True" and each["type"] != "Ready"
    ]
    return "; ".join(others) or f"is {status.get('phase', 'unknown')}"


def _restarts(pod: KubernetesObject) -> Iterator[str]:
    """Yield how often each container of a pod was restarted, and the last reason."""
    for container in pod.get("status", {}).get("containerStatuses", []):
        if container.get("restartCount"):
            last = container.get("lastState", {}).get("terminated", {})
            why = f"{last.get('reason', 'no reason')}, exit code {last.get('exitCode', 'unknown')}"
            yield f"{pod['metadata']['name']} was restarted {container['restartCount']} times (last: {why})"
