"""Why pods are not ready, and how often their containers were restarted."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.operate.verify.verified_platform import KubernetesObject, condition


def unready_reason(pod: KubernetesObject) -> str:
    """Return why a pod is not ready, according to the scheduler, its containers or its readiness gates.

    pod: The pod from the API server.
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


def restarts_of(pod: KubernetesObject) -> Iterator[str]:
    """Yield how often each container of a pod was restarted, and the last reason."""
    for container in pod.get("status", {}).get("containerStatuses", []):
        if container.get("restartCount"):
            last = container.get("lastState", {}).get("terminated", {})
            why = f"{last.get('reason', 'no reason')}, exit code {last.get('exitCode', 'unknown')}"
            yield f"{pod['metadata']['name']} was restarted {container['restartCount']} times (last: {why})"
