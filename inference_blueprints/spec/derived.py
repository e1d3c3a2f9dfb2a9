"""What follows from a blueprint: its deployments and workers, its zones, its names and its controllers."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.types import (
    BatchQueue,
    Deployment,
    Environment,
    Model,
    Network,
    Pool,
    Rates,
    Spec,
    Workers,
)
from inference_blueprints.spec.wording import Path
from inference_catalog.addresses import DEFAULT_ZONES
from inference_contracts.errors import Finding
from inference_contracts.operations_names import HEALTH, SHIFT, Controller
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class PlacedDeployment:
    """A deployment and its place."""

    path: Path
    """Its place in the blueprint."""
    model: Model
    deployment: Deployment
    """`model`, `deployment`: The blueprint's sections."""

    @property
    def release(self) -> str:
        """Helm release, and prefix of every object's name."""
        return f"{self.model.name}-{self.deployment.name}"


@dataclass(frozen=True, slots=True)
class PlacedWorkers:
    """Workers of one role of a deployment and their place."""

    deployment: PlacedDeployment
    role: str
    """``aggregated``, ``prefill`` or ``decode``."""
    path: Path
    """Their place in the blueprint."""
    workers: Workers
    """The blueprint's section."""

    @property
    def name(self) -> str:
        """The release, with the role if there are several."""
        release = self.deployment.release
        return release if self.role == "aggregated" else f"{release} {self.role}"


def each_deployment(spec: Spec) -> Iterator[PlacedDeployment]:
    """Yield every deployment in the order of the file."""
    for model_index, model in usable(spec.models):
        for index, deployment in usable(model.deployments):
            yield PlacedDeployment(("spec", "models", model_index, "deployments", index), model, deployment)


def each_workers(spec: Spec) -> Iterator[PlacedWorkers]:
    """Yield the workers of every role of every deployment in the order of the file."""
    for placed in each_deployment(spec):
        for place, workers in placed.deployment.workers.items():
            yield PlacedWorkers(placed, place[-1], (*placed.path, *place), workers)


def each_placement(spec: Spec) -> Iterator[tuple[PlacedWorkers, Pool]]:
    """Yield all workers whose pool exists, with the pool."""
    by_name = {pool.name: pool for _, pool in usable(spec.pools)}
    for placed in each_workers(spec):
        pool = by_name.get(placed.workers.pool)
        if pool:
            yield placed, pool


def divided(workers: Workers, path: Path, task: str) -> Iterator[Finding]:
    """Yield an error for each way in which a worker is divided, apart from tensor parallelism.

    workers: The section.
    path: Its place.
    task: What the model does.
    """
    for key, size in (
        ("pipelineParallelSize", workers.pipeline_parallel_size),
        ("dataParallelSize", workers.data_parallel_size),
    ):
        if size > 1:
            message = (
                f"got {size}, a worker of a model with 'task: {task}' is divided only by tensorParallelSize "
                "here; remove it, or raise 'replicas'"
            )
            yield Finding((*path, key), message)


def queue_rates(spec: Spec, queue: BatchQueue) -> Rates:
    """Return the prices of a queue's jobs: its own, else those of its model.

    Raises ValueError if neither states them. The rules report it.
    """
    own = (model.rates for _, model in usable(spec.models) if model.name == queue.model)
    rates = queue.rates or next(own, None)
    if rates is None:
        raise ValueError(f"neither queue '{queue.name}' nor its model has rates")
    return rates


def behind_the_door(spec: Spec) -> frozenset[str]:
    """Return the names of the models that answer requests of the front door.

    Without names in the section, these are all models but those that batch alone uses.
    """
    if spec.front_door is None:
        return frozenset()
    stated = [target.model for _, public in usable(spec.front_door.models) for _, target in usable(public.to)]
    if spec.front_door.models:
        return frozenset(stated)
    return frozenset(model.name for _, model in usable(spec.models) if not model.may_have_no_worker)


# The controllers that a blueprint asks for.


def controllers_of(spec: Spec) -> tuple[Controller, ...]:
    """Return the controllers whose sections a blueprint has."""
    sections = ((HEALTH, spec.gpu_health), (SHIFT, spec.capacity_shift))
    return tuple(controller for controller, section in sections if section is not None)


def karpenter_reboots(spec: Spec) -> bool:
    """Return whether Karpenter repairs nodes, and reboots those whose fault a reboot mends."""
    reboots = spec.gpu_health is not None and spec.gpu_health.reboots_per_node_per_day > 0
    return reboots and not spec.cluster.ecs and any(pool.repaired_by == "karpenter" for pool in spec.pools)


def models_domain(platform: str, network: Network) -> str:
    """Return the private zone in which each model has a name.

    platform: ``metadata.name``.
    network: The blueprint's section.
    """
    return network.domain or f"{platform}.internal"


def platform_zones(environment: Environment) -> list[str]:
    """Return the zones that the blueprint names, or the first that the catalogue knows; no account is asked.

    environment: The blueprint's section.
    Returns: Names of zones. Empty if the catalogue does not know the region, which a rule reports.
    """
    known = catalog.regions().get(environment.region, ())
    return list(environment.availability_zones or known[:DEFAULT_ZONES])
