"""A deployment of the blueprint together with what the catalogue knows of its parts."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints import catalog
from inference_blueprints.spec import types as spec


class UnresolvedError(LookupError):
    """A name in the blueprint that leads nowhere: the blueprint's own rules report it with its place."""


@dataclass(frozen=True, slots=True)
class ResolvedDeployment:
    """One deployment with everything that its plan is computed from.

    Parameters
    ----------
    blueprint
        The whole blueprint.
    model, deployment, pool
        The blueprint's sections.
    model_index, deployment_index
        Their places in the lists of the blueprint, for findings.
    shape
        The catalogue's description of the model.
    instance_types
        The pool's instance types, in its order.
    accelerator
        The pool's accelerator.
    engine
        The catalogue's entry of the engine.
    """

    blueprint: spec.Blueprint
    model: spec.Model
    deployment: spec.Deployment
    pool: spec.Pool
    model_index: int
    deployment_index: int
    shape: catalog.Model
    instance_types: tuple[catalog.InstanceType, ...]
    accelerator: catalog.Accelerator
    engine: catalog.Engine

    @property
    def tensor_parallel_size(self) -> int:
        """Accelerators of one worker."""
        return self.deployment.aggregated.tensor_parallel_size

    @property
    def release(self) -> str:
        """Helm release, and prefix of every object's name."""
        return f"{self.model.name}-{self.deployment.name}"

    @property
    def model_path(self) -> tuple[str | int, ...]:
        """Place of the model in the blueprint."""
        return ("spec", "models", self.model_index)

    @property
    def deployment_path(self) -> tuple[str | int, ...]:
        """Place of the deployment in the blueprint."""
        return (*self.model_path, "deployments", self.deployment_index)


def catalog_name(weights: spec.Weights) -> str:
    """Return the model catalogue's key for these weights.

    Parameters
    ----------
    weights
        The blueprint's section.

    Raises
    ------
    UnresolvedError
        If neither a catalogue entry nor a repository is named, which the blueprint's rules report.
    """
    name = weights.catalog or weights.hugging_face
    if name is None:
        raise UnresolvedError("weights name neither a catalogue entry nor a Hugging Face repository")
    return name


def resolve(blueprint: spec.Blueprint, model_index: int, deployment_index: int) -> ResolvedDeployment:
    """Look up everything that one deployment refers to.

    Parameters
    ----------
    blueprint
        The whole blueprint.
    model_index, deployment_index
        Which deployment.

    Returns
    -------
    ResolvedDeployment
        The deployment with its pool, its model's shape and its hardware.

    Raises
    ------
    UnresolvedError
        If a pool, instance type, model or engine is unknown, or the pool has no one accelerator.
    """
    model = blueprint.spec.models[model_index]
    deployment = model.deployments[deployment_index]
    pools = {pool.name: pool for pool in blueprint.spec.pools}
    try:
        pool = pools[deployment.aggregated.pool]
        shape = catalog.model(catalog_name(model.weights))
        instance_types = tuple(catalog.instance_type(name) for name in pool.instance_types)
        engine = catalog.engine(model.engine.chosen)
    except LookupError as error:
        raise UnresolvedError(str(error)) from error
    return ResolvedDeployment(
        blueprint=blueprint,
        model=model,
        deployment=deployment,
        pool=pool,
        model_index=model_index,
        deployment_index=deployment_index,
        shape=shape,
        instance_types=instance_types,
        accelerator=_common_accelerator(pool, instance_types),
        engine=engine,
    )


def _common_accelerator(
    pool: spec.Pool, instance_types: tuple[catalog.InstanceType, ...]
) -> catalog.Accelerator:
    """Return the one accelerator that all instance types of the pool have."""
    accelerators = {instance_type.accelerator for instance_type in instance_types}
    accelerator = next(iter(accelerators))
    if len(accelerators) != 1 or accelerator is None:
        raise UnresolvedError(f"pool '{pool.name}' has no one accelerator")
    return accelerator
