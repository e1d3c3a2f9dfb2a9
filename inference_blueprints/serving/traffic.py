"""How the peak of a model is shared by its deployments and their workers."""

from __future__ import annotations

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec import types as spec


def accelerators(deployment: spec.Deployment) -> int:
    """Return the accelerators of all workers of a deployment, by which requests are shared.

    Parameters
    ----------
    deployment
        The blueprint's section.
    """
    return sum(each.replicas * each.accelerators for each in deployment.workers.values())


def deployment_requests_per_second(model: spec.Model, deployment: spec.Deployment) -> float:
    """Return what reaches a deployment at the model's peak, in requests a second.

    Parameters
    ----------
    model, deployment
        The blueprint's sections.
    """
    share = accelerators(deployment) / sum(accelerators(each) for each in model.deployments)
    return model.workload.peak_requests_per_second * share


def worker_requests_per_second(resolved: ResolvedWorkers, replicas: int) -> float:
    """Return what reaches one of so many workers of a role at the peak: each request passes every role.

    Parameters
    ----------
    resolved
        The workers.
    replicas
        How many share the deployment's requests.
    """
    return deployment_requests_per_second(resolved.model, resolved.deployment) / replicas
