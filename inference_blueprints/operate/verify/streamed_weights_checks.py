"""Checks that workers streamed their weights from the bucket, and how fast."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.running_platform import RunningPlatform
from inference_blueprints.operate.verify.verified_platform import holds
from inference_blueprints.serving.estimates.node_copies import streams_weights
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.types import DeploymentPlan

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
