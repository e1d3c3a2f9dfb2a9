"""The workers of a deployment, with the catalogue entries that they refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, wraps
from typing import Any, Literal, TypeVar, cast

import inference_catalog as catalog
from inference_blueprints.serving.traffic import Traffic, deployment_traffic
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.invalid_values import usable
from inference_catalog.catalogue import shipped
from inference_catalog.entry_builder import UnknownEntryError
from inference_catalog.node_facts import node_count
from inference_contracts.records import dataclass

WorkerRole = Literal["aggregated", "prefill", "decode"]


class UnresolvedError(LookupError):
    """The blueprint refers to an unknown entry. The blueprint's own rules report it with its position."""


class _WithDictionary:
    """Gives a class with slots a dictionary, in which `cached_property` keeps what it has computed."""


@dataclass(frozen=True, slots=True)
class ResolvedWorkers(_WithDictionary):
    """The workers of one role of a deployment, with all inputs of their plan."""

    blueprint: spec.Blueprint
    model: spec.Model
    """`model`, `deployment`, `workers`, `pool`: The blueprint's sections."""
    deployment: spec.Deployment
    workers: spec.Workers
    role: WorkerRole
    """Phase of a request that they run."""
    pool: spec.Pool
    path: tuple[str | int, ...]
    """Path of their section in the blueprint, for findings."""
    shape: catalog.Model
    """The catalogue's description of the model."""
    types: tuple[catalog.InstanceType, ...]
    """The pool's instance types, in its order."""
    accelerator: catalog.Accelerator
    """The pool's accelerator."""
    engine: catalog.Engine
    """The catalogue's entry of the engine."""

    @cached_property
    def computed(self) -> dict[Callable[[ResolvedWorkers], Any], Any]:
        """What functions marked with `computed_once` have returned for these workers."""
        return {}

    @cached_property
    def traffic(self) -> Traffic:
        """The requests that the workers' deployment has to serve."""
        return deployment_traffic(self.blueprint.spec, self.model, self.deployment)

    @property
    def objectives(self) -> spec.Objectives:
        """The model's objectives; none for a deployment of batch alone, for whose answers nobody waits."""
        return self.model.objectives if self.traffic.is_waited_for else spec.Objectives()

    def with_replicas(self, replicas: int) -> ResolvedWorkers:
        """Return the workers with another maximum number, and so another part of the requests."""
        given = self.workers.replicas
        changed = replicas if isinstance(given, int) else given.model_copy(update={"max": replicas})
        workers = self.workers.model_copy(update={"replicas": changed})
        if self.role == "aggregated":
            part: dict[str, object] = {"aggregated": workers}
        else:
            roles = self.deployment.disaggregated
            part = {"disaggregated": roles and roles.model_copy(update={self.role: workers})}
        return replace(self._with_deployment(self.deployment.model_copy(update=part)), workers=workers)

    def beside(self, other: ResolvedWorkers) -> ResolvedWorkers:
        """Return the workers with the other role of their deployment as it is in these."""
        return self._with_deployment(other.deployment)

    def _with_deployment(self, deployment: spec.Deployment) -> ResolvedWorkers:
        deployments = [deployment if each is self.deployment else each for each in self.model.deployments]
        model = self.model.model_copy(update={"deployments": deployments})
        models = [model if each is self.model else each for each in self.blueprint.spec.models]
        section = self.blueprint.spec.model_copy(update={"models": models})
        blueprint = self.blueprint.model_copy(update={"spec": section})
        return replace(self, blueprint=blueprint, model=model, deployment=deployment)

    @cached_property
    def device_shape(self) -> catalog.Model:
        """The model as devices hold it: quantised while it is loaded, and with the layers that guess.

        Its name is one without a latency profile, because none was recorded with these options.
        """
        shape, model = self.shape, self.model
        if model.quantization:
            shape = shape.stored_as(model.quantization)
        if model.kv_cache_type == "fp8":
            shape = replace(shape, name=f"{shape.name} with KV cache in fp8")
        if model.speculation is None:
            return shape
        guessing = shape.with_predictions() if model.speculation.mtp else shape
        return replace(guessing, name=f"{shape.name} with speculation")

    @property
    def draft_file_bytes(self) -> int:
        """Size of the draft that each worker downloads from the Hub; 0 without one."""
        draft = self.model.draft
        return draft.weight_bytes if draft else 0

    @property
    def tensor_parallel_size(self) -> int:
        """Cores that share the attention of each layer: a GPU is one, a device of AWS has several."""
        return self.workers.tensor_parallel_size * self.accelerator.cores

    @property
    def pipeline_parallel_size(self) -> int:
        """Pipeline stages of one worker."""
        return self.workers.pipeline_parallel_size

    @property
    def data_parallel_size(self) -> int:
        """Data parallel ranks of one worker, each with its own requests and KV cache."""
        return self.workers.data_parallel_size

    @property
    def rank_accelerators(self) -> int:
        """Accelerators of one rank."""
        return self.workers.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def expert_accelerators(self) -> int:
        """Cores that share the experts of each layer, as whole experts or as slices."""
        return self.tensor_parallel_size * self.data_parallel_size

    @property
    def nodes(self) -> int:
        """Nodes that one worker spans."""
        return node_count(self.workers.accelerators, self.types)

    @property
    def accelerators_per_node(self) -> int:
        """Accelerators of one worker on each of its nodes."""
        return self.workers.accelerators // self.nodes

    @property
    def model_path(self) -> tuple[str | int, ...]:
        """Path of the model in the blueprint."""
        return self.path[:3]

    @property
    def shared_with_batch(self) -> bool:
        """Whether Dynamo's KV-aware router sends these workers requests of batch beside interactive ones.

        With `latencyPercent: 0`, there are none beside those of batch.
        """
        batch, model = self.blueprint.spec.batch, self.model
        if batch is None or batch.workers.latency_percent == 0:
            return False
        queued = any(queue.model == model.name for queue in batch.queues)
        return queued and model.stack.dynamo is not None and model.routing.kv_aware is not None

    @property
    def publishes_kv_events(self) -> bool:
        """Whether requests are routed by the cache content of these workers.

        A decode worker's cache comes from a prefill worker. Requests are routed by the cache of the prefill
        worker.
        """
        return self.model.routing.chosen == "kvAware" and self.role != "decode"

    @property
    def label(self) -> str:
        """The deployment's name, followed by the role if there are two."""
        return self.deployment.name if self.role == "aggregated" else f"{self.deployment.name}/{self.role}"

    @property
    def release(self) -> str:
        """Helm release, which is also the prefix of every object's name."""
        return f"{self.model.name}-{self.deployment.name}"


def catalog_name(weights: spec.Weights) -> str:
    """Return the catalogue key of the model with these weights.

    weights: The blueprint's section.
    Raises UnresolvedError if neither a catalogue entry nor a repository is named. The blueprint's rules
        report it.
    """
    name = weights.catalog or weights.hugging_face
    if name is None:
        raise UnresolvedError("weights name neither a catalogue entry nor a Hugging Face repository")
    return name


def engine_release(blueprint: spec.Blueprint, model: spec.Model) -> catalog.Engine:
    """Return the release of a model's engine: that of its own image, else the blueprint's.

    If the publisher builds an image per accelerator, it is the one for the model's pools.

    model: The blueprint's section.
    Raises UnknownEntryError if the release of the image is not recorded. The checks report it.
    """
    name, image = model.engine.chosen, model.engine.section.image
    if image is not None:
        releases = known_releases(blueprint, model)
        if image.release not in releases:
            raise UnknownEntryError("release", image.release, releases)
        return releases[image.release]
    release = blueprint.releases.engine(name)
    if not release.accelerators:
        return release
    used = _accelerator_names(blueprint, model)
    others = shipped().engine_releases[name].values()
    return next((each for each in (release, *others) if used & {*each.accelerators}), release)


def known_releases(blueprint: spec.Blueprint, model: spec.Model) -> Mapping[str, catalog.Engine]:
    """Return the recorded releases that a model's own image may have; none if the model names no image."""
    if model.engine.section.image is None:
        return {}
    return blueprint.releases.engine_releases(model.engine.chosen)


def _accelerator_names(blueprint: spec.Blueprint, model: spec.Model) -> set[str]:
    """Return the kinds of accelerators on which a model's workers run."""
    names = {
        workers.pool for _, deployment in usable(model.deployments) for workers in deployment.workers.values()
    }
    pools = [pool for _, pool in usable(blueprint.spec.pools) if pool.name in names]
    return {each.accelerator.name for pool in pools for each in pool.types if each.accelerator}


_Value = TypeVar("_Value")


def computed_once(compute: Callable[[ResolvedWorkers], _Value]) -> Callable[[ResolvedWorkers], _Value]:
    """Let a function of workers compute its value once: it stays with the workers, as a cached property."""

    @wraps(compute)
    def kept(resolved: ResolvedWorkers) -> _Value:
        values = resolved.computed
        if compute not in values:
            values[compute] = compute(resolved)
        return cast(_Value, values[compute])

    return kept


def resolve(
    blueprint: spec.Blueprint, model_index: int, deployment_index: int
) -> tuple[ResolvedWorkers, ...]:
    """Look up everything that the workers of a deployment refer to.

    model_index, deployment_index: Indexes of the deployment.
    Returns: One entry if aggregated, else prefill and decode; each with pool, model shape and hardware.
    Raises UnresolvedError if a pool, instance type, model or engine is unknown, a pool does not have exactly
        one kind of accelerator, or the deployment has no workers.
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
    """Look up the entries to which the workers of one role refer."""
    pools = {pool.name: pool for _, pool in usable(blueprint.spec.pools)}
    try:
        pool = pools[workers.pool]
        shape = shape_of(model.weights)
        types = tuple(catalog.instance_type(name) for name in pool.instance_types)
        engine = engine_release(blueprint, model)
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
        types=types,
        accelerator=_common_accelerator(pool, types),
        engine=engine,
    )


def common_zone(roles: Iterable[ResolvedWorkers]) -> str | None:
    """Return the only availability zone of all these workers; None if they may be in several.

    roles: Workers of every role of a deployment.
    """
    zones = {each.pool.availability_zone for each in roles}
    return next(iter(zones)) if len(zones) == 1 else None


def shape_of(weights: spec.Weights) -> catalog.Model:
    """Return the shape of the model with these weights.

    Raises UnresolvedError if it is not known. The blueprint's rules report it.
    """
    name = catalog_name(weights)
    if weights.entry is None:
        raise UnresolvedError(f"the model '{name}' is not known")
    return weights.entry


def _common_accelerator(pool: spec.Pool, types: tuple[catalog.InstanceType, ...]) -> catalog.Accelerator:
    """Return the accelerator common to all instance types of the pool.

    Processors have the memory of their instance: of types that differ in it, the smallest decides.
    """
    accelerators = [each.accelerator for each in types if each.accelerator]
    if len(accelerators) < len(types) or len({each.name for each in accelerators}) != 1:
        raise UnresolvedError(f"pool '{pool.name}' does not have exactly one kind of accelerator")
    return min(accelerators, key=lambda each: each.memory_mib)
