"""Summarises the frontends of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inference_blueprints.report.figures import FrontendSummary
from inference_blueprints.serving.estimates.frontend_size import busy_cpu, frontend_size
from inference_blueprints.serving.resolved import ResolvedWorkers

_DECIMALS = 3


def summarise_frontends(deployments: Iterable[tuple[ResolvedWorkers, ...]]) -> Iterator[FrontendSummary]:
    """Yield the frontends of each deployment on Dynamo.

    Parameters
    ----------
    deployments
        Workers of every role of each deployment.
    """
    for model, deployment in ((roles[0].model, roles[0].deployment) for roles in deployments):
        if model.stack.dynamo:
            size = frontend_size(model, deployment)
            busy = round(busy_cpu(model, deployment), _DECIMALS)
            yield FrontendSummary(model.name, deployment.name, size.replicas, size.cpu, size.memory_mib, busy)
