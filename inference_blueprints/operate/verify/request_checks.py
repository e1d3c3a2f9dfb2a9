"""Checks that the workers of every role receive requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.kubernetes.kubectl import KubectlFailed
from inference_blueprints.operate.verify.prometheus_metrics import sample_sum
from inference_blueprints.operate.verify.serving_access import ServedPlatform, deployments_of
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.types import DeploymentPlan


def answered(served: ServedPlatform) -> Mapping[str, Mapping[str, float]]:
    """Return the requests that the workers of each process received so far, by release.

    Processes without readable metrics are left out.
    """
    found = {}
    for deployment in deployments_of(served):
        try:
            found[deployment.release] = _counts(served, deployment)
        except KubectlFailed:
            continue
    return found


def requests(served: ServedPlatform) -> Iterator[CheckResult]:
    """Compare what the workers of each role received with the requests of these checks.

    served: The platform, after requests to its models.
    """
    for deployment in deployments_of(served):
        before, now = served.answered.get(deployment.release, {}), _counts(served, deployment)
        for process in deployment.workers:
            name = f"{deployment.release}/{process.name}"
            if process.name not in now:
                message = f"{name}: its workers do not tell how many requests they received"
                yield CheckResult("requests", "unknown", message)
                continue
            count = now[process.name] - before.get(process.name, 0.0)
            if count > 0:
                message = f"{name}: received {count:.0f} requests during the check"
                yield CheckResult("requests", "ok", message)
                continue
            others = "; decode workers compute prompts themselves" if process.role == "prefill" else ""
            message = f"{name}: received no request during the check{others}"
            command = served.access.look_command(deployment, process)
            yield CheckResult("requests", "error", message, command)


def _counts(served: ServedPlatform, deployment: DeploymentPlan) -> dict[str, float]:
    """Return the requests that the workers of each process received, where they tell."""
    stack = STACKS[deployment.stack]
    instances = served.access.instances(deployment)
    counts = {}
    for process in deployment.workers:
        counter = stack.request_counter(process.engine.engine if process.engine else "")
        pages = [served.access.metrics(deployment, each) for each in instances[process.name]]
        found = [sample_sum(page, counter.name, counter.label) for page in pages]
        if any(value is not None for value in found):
            counts[process.name] = sum(value or 0.0 for value in found)
    return counts
