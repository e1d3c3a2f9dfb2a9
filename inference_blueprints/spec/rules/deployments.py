"""The deployments of all models in one row, with their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inference_blueprints.spec.types import Aggregated, Deployment, Model, Pool
from inference_blueprints.spec.wording import Path


@dataclass(frozen=True, slots=True)
class PlacedDeployment:
    """A deployment and where it stands.

    Parameters
    ----------
    path
        Its place in the blueprint.
    model, deployment
        The blueprint's sections.
    """

    path: Path
    model: Model
    deployment: Deployment

    @property
    def release(self) -> str:
        """Helm release, and prefix of every object's name."""
        return f"{self.model.name}-{self.deployment.name}"

    @property
    def workers(self) -> Aggregated:
        """What runs and where."""
        return self.deployment.aggregated

    @property
    def workers_path(self) -> Path:
        """Place of that section."""
        return (*self.path, "aggregated")


def each_deployment(models: Mapping[int, Model]) -> Iterator[PlacedDeployment]:
    """Yield every deployment in the order of the file."""
    for model_index, model in models.items():
        for index, deployment in enumerate(model.deployments):
            yield PlacedDeployment(("spec", "models", model_index, "deployments", index), model, deployment)


def each_placement(
    models: Mapping[int, Model], pools: Mapping[int, Pool]
) -> Iterator[tuple[PlacedDeployment, Pool]]:
    """Yield every deployment whose pool exists, with the pool."""
    by_name = {pool.name: pool for pool in pools.values()}
    for deployment in each_deployment(models):
        pool = by_name.get(deployment.workers.pool)
        if pool:
            yield deployment, pool
