"""llm-d's InferencePools: whether the workers are in them, and what the router in front makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.serving_access import deployments_of, sample_sum
from inference_blueprints.operate.verify.verified_platform import KubernetesObject, RunningPlatform, holds
from inference_blueprints.serving.types import DeploymentPlan, Role

_KIND = "inferencepools.inference.networking.k8s.io"
#: What the router's filters read (``pkg/epp/framework/plugins/scheduling/filter/bylabel`` of llm-d-router).
_ROLE_LABEL = "llm-d.ai/role"
_ROLES: Mapping[Role, str] = MappingProxyType(
    {"worker": "prefill-decode", "prefill": "prefill", "decode": "decode"}
)
#: The picker's counts (``pkg/epp/metrics`` and the plug-in ``disagg`` of llm-d-router 0.10).
_READY = "llm_d_epp_ready_endpoints"
_ATTEMPTS = "llm_d_epp_scheduler_attempts_total"
_DECISIONS = "llm_d_epp_disagg_decision_total"
_WITH_PREFILL = 'decision_type="prefill-decode"'


def members(running: RunningPlatform) -> Iterator[CheckResult]:
    """Check that each pool exists and selects ready workers of every role, with the right labels."""
    for deployment in _routed(running):
        pool = _pool(running, deployment)
        if pool is None:
            message = f"{deployment.release}: there is no InferencePool, so the router finds no worker"
            yield CheckResult("inference pools", "error", message, running.platform.deploy_command)
            continue
        found = running.access.pods(deployment)
        faults = [
            fault
            for process in deployment.workers
            for fault in _faults(pool, process.name, _ROLES[process.role], found[process.name])
        ]
        if faults:
            message = f"{deployment.release}: {'; '.join(faults)}"
            yield CheckResult("inference pools", "error", message, running.platform.deploy_command)
        else:
            count = len(_ready_members(pool, deployment, found))
            yield CheckResult(
                "inference pools", "ok", f"{deployment.release}: {count} workers are in its pool"
            )


def picks(running: RunningPlatform) -> Iterator[CheckResult]:
    """Check the metrics of each router: the workers in its pool, and the requests that it assigned.

    running: The platform, after requests to its models.
    """
    for deployment in _routed(running):
        pool = _pool(running, deployment)
        found = running.access.pods(deployment)
        expected = len(_ready_members(pool, deployment, found)) if pool else 0
        routers = [pod for pod in found[deployment.entry_point.name] if holds(pod, "Ready")]
        names = [pod["metadata"]["name"] for pod in routers]
        port = _metrics_port(deployment)
        pages = {name: running.access.metrics_page(deployment, name, port) for name in names}
        yield _picked(running, deployment, pages, expected)


def _picked(
    running: RunningPlatform, deployment: DeploymentPlan, pages: Mapping[str, str], expected: int
) -> CheckResult:
    """Check the metrics of a deployment's routers together."""
    name = deployment.release
    logs = f"kubectl logs --namespace {running.platform.namespace(name)} --container picker"
    known = {router: sample_sum(page, _READY) for router, page in pages.items()}
    silent = [router for router, count in known.items() if count is None]
    if not known or silent:
        reason = f"no metrics from {', '.join(silent)}" if silent else "no router is ready"
        return CheckResult("picks", "unknown", f"{name}: {reason}")
    for router, count in known.items():
        if count != expected:
            message = f"{name}: {router} has {count:.0f} workers, {expected} are ready"
            return CheckResult("picks", "error", message, f"{logs} {router}")
    page = "\n".join(pages.values())
    failed = sample_sum(page, _ATTEMPTS, 'status="failure"') or 0.0
    picked = sample_sum(page, _ATTEMPTS, 'status="success"') or 0.0
    if not picked:
        return CheckResult("picks", "error", f"{name}: no request was assigned to a worker", f"{logs} ROUTER")
    words = f"{name}: {picked:.0f} requests assigned to {expected} workers"
    if deployment.kv_transfer is not None:
        apart = sample_sum(page, _DECISIONS, _WITH_PREFILL) or 0.0
        words = f"{words}, {apart:.0f} with a prefill worker"
        if not apart:
            message = f"{words}; decode workers compute all prompts themselves"
            return CheckResult("picks", "error", message, f"{logs} {next(iter(pages))}")
    if failed:
        return CheckResult("picks", "warning", f"{words}; {failed:.0f} times no worker was found")
    return CheckResult("picks", "ok", words)


def _routed(running: RunningPlatform) -> list[DeploymentPlan]:
    """Return the deployments that have a picker."""
    return [deployment for deployment in deployments_of(running) if deployment.picker is not None]


def _pool(running: RunningPlatform, deployment: DeploymentPlan) -> KubernetesObject | None:
    """Return a deployment's pool, which has the release's name."""
    pools = running.kubectl.get(_KIND, "--namespace", running.platform.namespace(deployment.release))
    return next((pool for pool in pools if pool["metadata"]["name"] == deployment.release), None)


def _faults(pool: KubernetesObject, process: str, role: str, pods: list[KubernetesObject]) -> Iterator[str]:
    """Yield the reasons why workers of one role cannot be picked."""
    inside = [pod for pod in pods if _selected(pool, pod)]
    if not any(holds(pod, "Ready") for pod in inside):
        yield f"its pool has no ready {process}"
    for pod in inside:
        label = pod["metadata"]["labels"].get(_ROLE_LABEL)
        if label != role:
            yield f"{pod['metadata']['name']}: label {_ROLE_LABEL} is {label!r}, not {role!r}"


def _ready_members(
    pool: KubernetesObject, deployment: DeploymentPlan, found: Mapping[str, list[KubernetesObject]]
) -> list[KubernetesObject]:
    """Return the ready workers that a pool selects."""
    workers = [pod for process in deployment.workers for pod in found[process.name]]
    return [pod for pod in workers if _selected(pool, pod) and holds(pod, "Ready")]


def _selected(pool: KubernetesObject, pod: KubernetesObject) -> bool:
    labels: Mapping[str, str] = pool["spec"]["selector"]["matchLabels"]
    return bool(labels.items() <= pod["metadata"]["labels"].items())


def _metrics_port(deployment: DeploymentPlan) -> int:
    """Return the metrics port of the picker next to a router."""
    ports = [port for sidecar in deployment.entry_point.sidecars for port in sidecar.ports]
    return next(port.number for port in ports if port.name == "metrics")
