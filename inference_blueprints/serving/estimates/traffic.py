"""Divides the peak of a model among its deployments and their workers."""

from __future__ import annotations

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec import types as spec


def accelerators(deployment: spec.Deployment) -> int:
    """Return the accelerators of all workers of a deployment. Requests are divided in proportion to them."""
    return sum(each.maximum * each.accelerators for each in deployment.workers.values())


def deployment_requests_per_second(model: spec.Model, deployment: spec.Deployment) -> float:
    """Return the requests per second of a deployment at the model's peak."""
    share = accelerators(deployment) / sum(accelerators(each) for each in model.deployments)
    return model.workload.peak_requests_per_second * share


def worker_requests_per_second(resolved: ResolvedWorkers, replicas: int) -> float:
    """Return the requests per second of one worker of a role at the peak. Each request passes every role.

    replicas: Number of workers that share the deployment's requests.
    """
    return deployment_requests_per_second(resolved.model, resolved.deployment) / replicas
