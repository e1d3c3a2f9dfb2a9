"""Checks of the workers: whether they run, receive requests, are scraped, and streamed their weights."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_blueprints.operate.verify.serving_access import (
    Instance,
    ServedPlatform,
    deployments_of,
    sample_sum,
)
from inference_blueprints.operate.verify.verified_platform import RunningPlatform, holds
from inference_blueprints.serving.estimates.node_copies import streams_weights
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.types import DeploymentPlan, Process
from inference_contracts.metric_labels import PROMETHEUS_ADDRESS, PROMETHEUS_NAMESPACE, SERVING_JOB

# Checks that Prometheus scrapes every serving pod: what KEDA reads is then complete.

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


# Checks that workers streamed their weights from the bucket, and how fast.

#: The last line of the streamer that vLLM uses, in the releases with and without the name of the device
#: (``runai_model_streamer/file_streamer/file_streamer.py`` of run-ai/runai-model-streamer).
_STREAMED = re.compile(
    r"\[RunAI Streamer\] Overall time to stream (?P<size>[^:\n]+?) of all files[^:\n]*: "
    r"(?P<seconds>[\d.]+)s, (?P<speed>[^\n]+/s)"
)


def streamed_weights(running: RunningPlatform) -> Iterator[CheckResult]:
    """Look in the logs of each model whose weights are streamed for the end of the stream."""
    blueprint = running.platform.blueprint
    for index, plan in enumerate(running.platform.plan.models):
        for number, deployment in enumerate(plan.deployments):
            if streams_weights(resolve(blueprint, index, number)[0]):
                yield _of_deployment(running, deployment)


def _of_deployment(running: RunningPlatform, deployment: DeploymentPlan) -> CheckResult:
    """Report the slowest stream of a deployment's ready workers, or those whose log names none."""
    namespace, found = running.platform.namespace(deployment.release), running.access.pods(deployment)
    streams, silent = [], []
    for process in deployment.workers:
        for pod in found[process.name]:
            if not holds(pod, "Ready"):
                continue
            name = pod["metadata"]["name"]
            log = running.kubectl.run("logs", "--namespace", namespace, name, "--container", "main")
            ends = list(_STREAMED.finditer(log))
            streams += [(float(end["seconds"]), name, end) for end in ends]
            silent += [] if ends else [name]
    if silent or not streams:
        names = ", ".join(silent) or "no ready worker"
        message = (
            f"{deployment.release}: the log of {names} does not tell that weights were streamed; they were "
            "downloaded, or the log no longer has its first lines; restart a worker to check it"
        )
        command = f"kubectl logs --namespace {namespace} {silent[0] if silent else 'POD'} | grep -i stream"
        return CheckResult("streamed weights", "unknown", message, command)
    seconds, name, slowest = max(streams, key=lambda stream: stream[0])
    message = f"{deployment.release}: the slowest stream took {seconds:,.1f} s: {slowest['size']} at "
    return CheckResult("streamed weights", "ok", f"{message}{slowest['speed'].strip()}, {name}")


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


def workers(served: ServedPlatform) -> Iterator[CheckResult]:
    """Check that every process of every deployment has all its instances, ready and without restarts."""
    for deployment in deployments_of(served):
        found = served.access.instances(deployment)
        for process in deployment.processes:
            yield _process(served, deployment, process, found[process.name])


def _process(
    served: ServedPlatform, deployment: DeploymentPlan, process: Process, instances: Sequence[Instance]
) -> CheckResult:
    """Check how many instances of a process are ready, why others are not, and which were restarted."""
    name = f"{deployment.release}/{process.name}"
    expected = served.access.expected(deployment, process)
    waiting = [each for each in instances if not each.is_ready]
    ready = len(instances) - len(waiting)
    at_least = "at least " if process.scaling else ""
    message = f"{name}: {ready} of {at_least}{expected} are ready"
    command = served.access.look_command(deployment, process)
    if ready < expected:
        reasons = [f"{each.name}: {each.unready}" for each in waiting[:_TOLD]]
        untold = [f"and {len(waiting) - _TOLD} more"] if len(waiting) > _TOLD else []
        words = "; ".join([*reasons, *untold]) or "the others are missing"
        return CheckResult("workers", "error", f"{message}; {words}", command)
    restarts = [told for each in instances for told in each.restarts]
    if restarts:
        return CheckResult("workers", "warning", f"{message}; {'; '.join(restarts)}", command)
    return CheckResult("workers", "ok", message)
