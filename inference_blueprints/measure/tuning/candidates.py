"""Possible configurations of a model: engine, topology, pools, tensor parallel sizes, numbers of workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.spec.types import (
    Blueprint,
    Deployment,
    Disaggregated,
    Engine,
    Pool,
    Workers,
)

#: Numbers of workers are tried one by one up to here, and beyond in steps of a part of this size: about 3 %.
_EXACT = 32


@dataclass(frozen=True, slots=True, order=True)
class RoleShape:
    """Workers of one role, without their number."""

    pool: str
    """Pool of the workers."""
    tensor_parallel_size: int


@dataclass(frozen=True, slots=True, order=True)
class WorkerShape:
    """A configuration without its numbers of workers."""

    engine: str
    """The blueprint's key of the engine."""
    roles: tuple[RoleShape, ...]
    """One role for both phases, or prefill and decode."""

    @property
    def is_aggregated(self) -> bool:
        """Whether the same workers do prefill and decode."""
        return len(self.roles) == 1

    @property
    def topology(self) -> str:
        """The blueprint's key of the topology."""
        return "aggregated" if self.is_aggregated else "disaggregated"


@dataclass(frozen=True, slots=True, order=True)
class TuningCandidate:
    """A configuration."""

    shape: WorkerShape
    replicas: tuple[int, ...]
    """Number of workers per role."""

    @property
    def accelerators(self) -> int:
        """Devices of all workers."""
        return sum(
            count * role.tensor_parallel_size
            for count, role in zip(self.replicas, self.shape.roles, strict=True)
        )

    def deployment(self, name: str) -> Deployment:
        """Return the blueprint's section for it."""
        workers = [
            Workers(pool=role.pool, replicas=count, tensor_parallel_size=role.tensor_parallel_size)
            for count, role in zip(self.replicas, self.shape.roles, strict=True)
        ]
        if self.shape.is_aggregated:
            return Deployment(name=name, aggregated=workers[0])
        return Deployment(name=name, disaggregated=Disaggregated(prefill=workers[0], decode=workers[1]))

    def within(self, blueprint: Blueprint, model_index: int) -> Blueprint:
        """Return the blueprint in which it is the model's one deployment.

        blueprint: What else there is.
        model_index: Which model is meant.
        """
        models = list(blueprint.spec.models)
        model = models[model_index]
        changes: dict[str, object] = {"deployments": [self.deployment(model.deployments[0].name)]}
        if model.engine.chosen != self.shape.engine:
            changes["engine"] = Engine.model_validate({self.shape.engine: {}})
        models[model_index] = model.model_copy(update=changes)
        return blueprint.model_copy(update={"spec": blueprint.spec.model_copy(update={"models": models})})


def engines(blueprint: Blueprint, model_index: int) -> tuple[str, ...]:
    """Return the engines to look at: all, or the model's own where it has arguments, which are that one's."""
    engine = blueprint.spec.models[model_index].engine
    given = engine.model_dump(exclude_none=True, exclude_defaults=True)
    has_arguments = any(section.get("args") for section in given.values())
    return (engine.chosen,) if has_arguments else tuple(sorted(ENGINES))


def shapes(blueprint: Blueprint, engines_looked_at: Sequence[str]) -> Iterator[WorkerShape]:
    """Yield every shape on the blueprint's pools, whether it fits them or not.

    blueprint: Its pools are the pools to choose from.
    """
    roles = [RoleShape(pool.name, size) for pool in blueprint.spec.pools for size in _sizes(pool)]
    for engine in engines_looked_at:
        yield from (WorkerShape(engine, (role,)) for role in roles)
        yield from (WorkerShape(engine, (prefill, decode)) for prefill, decode in product(roles, repeat=2))


def counts(at_most: int) -> tuple[int, ...]:
    """Return the numbers of workers that are tried."""
    found, count = [], 1
    while count <= at_most:
        found.append(count)
        count += max(1, count // _EXACT)
    return tuple(found)


def _sizes(pool: Pool) -> list[int]:
    """Return the tensor parallel sizes that leave no accelerator of a pool's nodes over."""
    nodes = [each.accelerator_count for each in pool.types]
    return [size for size in range(1, min(nodes) + 1) if all(count % size == 0 for count in nodes)]
