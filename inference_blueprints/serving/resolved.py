"""The workers of a deployment together with what the catalogue knows of their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from inference_blueprints import catalog
from inference_blueprints.catalog.span import node_count
from inference_blueprints.spec import types as spec

WorkerRole = Literal["aggregated", "prefill", "decode"]


class UnresolvedError(LookupError):
    """A name in the blueprint that leads nowhere: the blueprint's own rules report it with its place."""


@dataclass(frozen=True, slots=True)
class ResolvedWorkers:
    """The workers of one role of a deployment with everything that their plan is computed from.

    Parameters
    ----------
    blueprint
        The whole blueprint.
    model, deployment, workers, pool
        The blueprint's sections.
    role
        What of a request they do.
    path
        Place of their section in the blueprint, for findings.
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
    workers: spec.Workers
    role: WorkerRole
    pool: spec.Pool
    path: tuple[str | int, ...]
    shape: catalog.Model
    instance_types: tuple[catalog.InstanceType, ...]
    accelerator: catalog.Accelerator
    engine: catalog.Engine

    @property
    def tensor_parallel_size(self) -> int:
        """Accelerators that share each layer's attention."""
        return self.workers.tensor_parallel_size

    @property
    def pipeline_parallel_size(self) -> int:
        """Stages of layers of one worker."""
        return self.workers.pipeline_parallel_size

    @property
    def data_parallel_size(self) -> int:
        """Ranks of one worker, each with requests and a KV cache of its own."""
        return self.workers.data_parallel_size

    @property
    def rank_accelerators(self) -> int:
        """Accelerators of one of those ranks."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def expert_accelerators(self) -> int:
        """Accelerators that share each layer's experts, be it whole ones or slices."""
        return self.tensor_parallel_size * self.data_parallel_size

    @property
    def nodes(self) -> int:
        """Nodes that one worker spans."""
        return node_count(self.workers.accelerators, self.instance_types)

    @property
    def accelerators_per_node(self) -> int:
        """Accelerators that one worker has on each of its nodes."""
        return self.workers.accelerators // self.nodes

    @property
    def model_path(self) -> tuple[str | int, ...]:
        """Place of the model in the blueprint."""
        return self.path[:3]

    @property
    def publishes_kv_events(self) -> bool:
        """Whether requests are routed by what these workers hold.

        What a decode worker holds came from a prefill worker, by whose cache requests are routed.
        """
        return self.model.routing.chosen == "kvAware" and self.role != "decode"

    @property
    def label(self) -> str:
        """The deployment's name, and the role's behind it where there are two."""
        return self.deployment.name if self.role == "aggregated" else f"{self.deployment.name}/{self.role}"

    @property
    def release(self) -> str:
        """Helm release, and prefix of every object's name."""
        return f"{self.model.name}-{self.deployment.name}"


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


def resolve(
    blueprint: spec.Blueprint, model_index: int, deployment_index: int
) -> tuple[ResolvedWorkers, ...]:
    """Look up everything that the workers of one deployment refer to.

    Parameters
    ----------
    blueprint
        The whole blueprint.
    model_index, deployment_index
        Which deployment.

    Returns
    -------
    tuple of ResolvedWorkers
        One aggregated, or prefill and decode: with their pool, the model's shape and the hardware.

    Raises
    ------
    UnresolvedError
        If a pool, instance type, model or engine is unknown, a pool has no one accelerator, or the deployment
        names no workers.
    """
    model = blueprint.spec.models[model_index]
    deployment = model.deployments[deployment_index]
    place = ("spec", "models", model_index, "deployments", deployment_index)
    if not deployment.workers:
        raise UnresolvedError("the deployment is neither aggregated nor disaggregated")
    return tuple(
        _resolve(blueprint, model, deployment, workers, (*place, *key))
        for key, workers in deployment.workers.items()
    )


def _resolve(
    blueprint: spec.Blueprint,
    model: spec.Model,
    deployment: spec.Deployment,
    workers: spec.Workers,
    path: tuple[str | int, ...],
) -> ResolvedWorkers:
    """Look up what the workers of one role refer to."""
    pools = {pool.name: pool for pool in blueprint.spec.pools}
    try:
        pool = pools[workers.pool]
        shape = catalog.model(catalog_name(model.weights))
        instance_types = tuple(catalog.instance_type(name) for name in pool.instance_types)
        engine = blueprint.releases.engine(model.engine.chosen)
    except LookupError as error:
        raise UnresolvedError(str(error)) from error
    return ResolvedWorkers(
        blueprint=blueprint,
        model=model,
        deployment=deployment,
        workers=workers,
        role=cast(WorkerRole, path[-1]),
        pool=pool,
        path=path,
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
