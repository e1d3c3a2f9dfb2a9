"""Checks that the processes of the deployments run, and why some are not ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.serving_access import Instance, ServedPlatform, deployments_of
from inference_blueprints.serving.types import DeploymentPlan, Process

#: Number of instances whose reasons are reported; the others are only counted.
_TOLD = 3


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
