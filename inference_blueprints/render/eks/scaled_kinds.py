"""The kinds of objects that KEDA scales on a platform, for its permissions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Batch


@dataclass(frozen=True, slots=True)
class ScaledKind:
    """A kind with the subresource ``scale``: its API group, and the plural that permissions name."""

    group: str
    resource: str


DEPLOYMENT: Final = ScaledKind("apps", "deployments")
_ADAPTER: Final = ScaledKind("nvidia.com", "dynamographdeploymentscalingadapters")
_GROUP: Final = ScaledKind("leaderworkerset.x-k8s.io", "leaderworkersets")


def scaled_kinds(plan: ServingPlan, batch: Batch | None) -> frozenset[ScaledKind]:
    """Return the kinds of all elastic workers and of batch workers that follow their queue.

    batch: Section of the blueprint. None without batch.
    """
    kinds = {
        _ADAPTER if deployment.stack == "dynamo" else _GROUP if process.nodes > 1 else DEPLOYMENT
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.workers
        if process.scaling
    }
    if batch and batch.workers.ecs is None and batch.workers.min < batch.workers.max:
        kinds.add(DEPLOYMENT)
    return frozenset(kinds)
