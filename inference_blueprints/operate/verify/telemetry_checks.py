"""Checks that Prometheus scrapes every serving pod: what KEDA reads is then complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.kubernetes.kubectl import KubectlFailed
from inference_blueprints.operate.verify.running_platform import RunningPlatform
from inference_blueprints.serving.types import DeploymentPlan
from inference_contracts.metric_labels import PROMETHEUS_ADDRESS, PROMETHEUS_NAMESPACE, SERVING_JOB

_CHECK = "metrics"
#: Pods whose error is told; the others are only counted.
_TOLD = 3


def scraped_pods(running: RunningPlatform) -> Iterator[CheckResult]:
    """Check that each pod of each deployment is a target of Prometheus that answers."""
    if running.blueprint.spec.observability is None:
        return
    try:
        errors = _errors_by_pod(running)
    except KubectlFailed as error:
        message = f"Prometheus does not answer in namespace {PROMETHEUS_NAMESPACE}: {error}"
        yield CheckResult(_CHECK, "error", message, f"kubectl get pods --namespace {PROMETHEUS_NAMESPACE}")
        return
    except (KeyError, TypeError, ValueError) as error:
        yield CheckResult(_CHECK, "unknown", f"the answer of Prometheus cannot be read: {error!r}")
        return
    for model in running.plan.models:
        for deployment in model.deployments:
            yield _deployment(running, deployment, errors)


def _errors_by_pod(running: RunningPlatform) -> dict[str, str]:
    """Return the last error of each serving pod that Prometheus knows; empty for a pod that answers.

    Source: Prometheus, "HTTP API", Targets (https://prometheus.io/docs/prometheus/latest/querying/api/#targets).
    """
    address = urlsplit(PROMETHEUS_ADDRESS)
    service = (address.hostname or "").partition(".")[0]
    path = f"/api/v1/namespaces/{PROMETHEUS_NAMESPACE}/services/{service}:{address.port}/proxy"
    query = f"scrapePool={SERVING_JOB}&state=active"
    answer = json.loads(running.kubectl.run("get", "--raw", f"{path}/api/v1/targets?{query}"))
    return {
        target["labels"]["pod"]: "" if target["health"] == "up" else target["lastError"] or target["health"]
        for target in answer["data"]["activeTargets"]
    }


def _deployment(running: RunningPlatform, deployment: DeploymentPlan, errors: dict[str, str]) -> CheckResult:
    """Compare the ready pods of a deployment with the targets."""
    instances = [
        each.name
        for found in running.access.instances(deployment).values()
        for each in found
        if each.is_ready
    ]
    wrong = [f"{name}: {errors.get(name, 'is no target')}" for name in instances if errors.get(name, "none")]
    count = f"{len(instances) - len(wrong)} of {len(instances)} ready pods are scraped"
    message = f"{deployment.release}: {count}"
    if wrong:
        untold = [f"and {len(wrong) - _TOLD} more"] if len(wrong) > _TOLD else []
        words = "; ".join([*wrong[:_TOLD], *untold])
        return CheckResult(_CHECK, "error", f"{message}; {words}", running.platform.deploy_command)
    return CheckResult(_CHECK, "ok", message)
