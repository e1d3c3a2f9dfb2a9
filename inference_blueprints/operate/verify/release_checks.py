"""Checks Helm releases, their controllers and device plug-ins, and the copies of weights."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from typing import Any

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.synthesised_platform import ExpectedRelease
from inference_blueprints.operate.verify.verified_platform import (
    KubernetesObject,
    RunningPlatform,
    condition,
    holds,
)

#: Annotation of Helm on every object of a release (https://helm.sh/docs/chart_best_practices/labels).
_RELEASE_ANNOTATION = "meta.helm.sh/release-name"
_SYSTEM_NAMESPACE = "kube-system"


def charts(running: RunningPlatform) -> Iterator[CheckResult]:
    """Compare Helm's records with the releases of the blueprint, and check their controllers."""
    secrets = running.kubectl.get(
        *("secrets", "--all-namespaces", "--selector", "owner=helm,status!=superseded")
    )
    controllers = running.kubectl.get("deployments", "--all-namespaces")
    problems = 0
    for release in running.platform.assembly.releases.values():
        faults = [*_record_faults(release, secrets), *_controller_faults(release, controllers)]
        problems += bool(faults)
        if faults:
            message = f"{release.name} in {release.namespace}: {'; '.join(faults)}"
            yield CheckResult("charts", "error", message, running.platform.deploy_command)
    if not problems:
        names = (f"{each.name} {each.version}" for each in running.platform.assembly.releases.values())
        yield CheckResult("charts", "ok", f"deployed: {', '.join(names)}")


def _record_faults(release: ExpectedRelease, secrets: list[KubernetesObject]) -> Iterator[str]:
    """Check the newest revision of a release."""
    revisions = [
        secret
        for secret in secrets
        if secret["metadata"]["labels"].get("name") == release.name
        and secret["metadata"]["namespace"] == release.namespace
    ]
    if not revisions:
        yield "not installed"
        return
    newest = max(revisions, key=lambda secret: int(secret["metadata"]["labels"]["version"]))
    status = newest["metadata"]["labels"]["status"]
    if status != "deployed":
        yield f"its newest revision is {status}"
    version = _content(newest)["chart"]["metadata"]["version"]
    if version.removeprefix("v") != release.version.removeprefix("v"):
        yield f"version {version} is installed, {release.version} is pinned"


def _content(secret: KubernetesObject) -> dict[str, Any]:
    """Unpack Helm's record: compressed JSON in base64, within Kubernetes' base64."""
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    content: dict[str, Any] = json.loads(gzip.decompress(packed))
    return content


def _controller_faults(release: ExpectedRelease, controllers: list[KubernetesObject]) -> Iterator[str]:
    """Check the Deployments of a release."""
    for controller in controllers:
        if _release_of(controller) != release.name:
            continue
        wanted = controller["spec"].get("replicas", 1)
        ready = controller.get("status", {}).get("readyReplicas", 0)
        if ready < wanted:
            yield f"deployment {controller['metadata']['name']}: {ready} of {wanted} are ready"


def device_plug_ins(running: RunningPlatform) -> Iterator[CheckResult]:
    """Find out whether the daemons of all nodes are ready, device plug-ins among them."""
    daemons = running.kubectl.get("daemonsets", "--namespace", _SYSTEM_NAMESPACE)
    there = {_release_of(daemon) for daemon in daemons}
    plug_ins = [name for name in running.platform.assembly.releases if "device-plugin" in name]
    missing = [name for name in plug_ins if name not in there]
    for name in missing:
        message = f"{name} has no DaemonSet, so its devices cannot be allocated"
        yield CheckResult("device plug-ins", "error", message, running.platform.deploy_command)
    unready = 0
    for daemon in daemons:
        status, name = daemon.get("status", {}), daemon["metadata"]["name"]
        wanted, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
        if ready < wanted:
            unready += 1
            message = f"{name}: ready on {ready} of {wanted} nodes"
            command = f"kubectl describe daemonset {name} --namespace {_SYSTEM_NAMESPACE}"
            yield CheckResult("device plug-ins", "error", message, command)
    if not missing and not unready:
        names = ", ".join(sorted(daemon["metadata"]["name"] for daemon in daemons)) or "none is needed"
        yield CheckResult("device plug-ins", "ok", f"ready on all their nodes: {names}")


def _release_of(kubernetes_object: KubernetesObject) -> str | None:
    release: str | None = kubernetes_object["metadata"].get("annotations", {}).get(_RELEASE_ANNOTATION)
    return release


def weights(running: RunningPlatform) -> Iterator[CheckResult]:
    """Check that each mirrored model is completely in the bucket."""
    for model in running.platform.plan.models:
        if model.weights_mirror is None:
            continue
        release = model.weights_mirror.release
        namespace = running.platform.namespace(release)
        selector = f"app.kubernetes.io/instance={release}"
        jobs = running.kubectl.get("jobs", "--namespace", namespace, "--selector", selector)
        yield _copy(model.name, jobs, f"kubectl logs --namespace {namespace} --selector {selector}")


def _copy(model: str, jobs: list[KubernetesObject], logs: str) -> CheckResult:
    """Check the state of a copy."""
    if any(holds(job, "Complete") for job in jobs):
        return CheckResult("weights", "ok", f"{model}: copied into the platform's bucket")
    failed = [condition(job, "Failed").get("message", "") for job in jobs if holds(job, "Failed")]
    if failed:
        return CheckResult("weights", "error", f"{model}: not copied: {'; '.join(failed)}", logs)
    if jobs:
        return CheckResult("weights", "warning", f"{model}: is still being copied", logs)
    return CheckResult("weights", "error", f"{model}: no Job copies it; the release may be incomplete", logs)
