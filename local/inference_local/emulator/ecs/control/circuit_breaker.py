"""When a deployment has failed.

Sources: AWS, "How the Amazon ECS deployment circuit breaker detects failures"
(deployment-circuit-breaker.html); API DeploymentCircuitBreaker and ThresholdConfiguration.
"""

from __future__ import annotations

from typing import Final

from inference_local.emulator.ecs.control.cluster_state import EcsDeployment, EcsService, Shape

#: BOUNDED_PERCENT: "a minimum threshold of 3 and a maximum threshold of 200".
_MINIMUM: Final = 3
_MAXIMUM: Final = 200
_DEFAULT_PERCENT: Final = 50


def threshold(desired: int, breaker: Shape) -> int:
    """Return the number of failed tasks that fails a deployment.

    desired: The service's desired number of tasks.
    breaker: ``deploymentCircuitBreaker`` of the service.
    """
    settings = breaker.get("thresholdConfiguration") or {}
    kind = settings.get("type", "BOUNDED_PERCENT")
    value = int(settings.get("value", _DEFAULT_PERCENT))
    if kind == "COUNT":
        return value
    share = -(-desired * value // 100)
    return share if kind == "UNBOUNDED_PERCENT" else max(_MINIMUM, min(_MAXIMUM, share))


def count_failure(service: EcsService, deployment: EcsDeployment) -> bool:
    """Count a task that failed to start or to be healthy; return whether the deployment has failed now.

    Counted are the tasks of deployments that are in progress: afterwards, the scheduler replaces tasks for
    ever.
    """
    deployment.failed_tasks += 1
    if deployment.rollout_state != "IN_PROGRESS":
        return False
    deployment.breaker_count += 1
    breaker = service.request.get("deploymentConfiguration", {}).get("deploymentCircuitBreaker") or {}
    if not breaker.get("enable"):
        return False
    return deployment.breaker_count >= threshold(service.desired, breaker)


def count_healthy(service: EcsService, deployment: EcsDeployment) -> None:
    """Note that a task became healthy, which resets the count by default (resetOnHealthyTask)."""
    breaker = service.request.get("deploymentConfiguration", {}).get("deploymentCircuitBreaker") or {}
    if breaker.get("resetOnHealthyTask", True):
        deployment.breaker_count = 0


def rollback_to(service: EcsService) -> EcsDeployment | None:
    """Return the deployment to go back to, if the service wants that and has one.

    It is "the most recent deployment that is in a COMPLETED state".
    """
    breaker = service.request.get("deploymentConfiguration", {}).get("deploymentCircuitBreaker") or {}
    if not breaker.get("rollback"):
        return None
    completed = [each for each in service.deployments if each.rollout_state == "COMPLETED"]
    return max(completed, key=lambda each: each.created_at, default=None)
