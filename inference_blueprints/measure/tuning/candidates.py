"""Possible configurations of a model, what they cost, and whether they fit the pools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from inference_blueprints.report.plan.sections.pools import summarise_pool
from inference_blueprints.report.plan.sections.processes import summarise_processes
from inference_blueprints.report.pricing.rates import Prices, share_of
from inference_blueprints.report.sizing.node_packing import cheapest_placement, workers_of_pool
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.rule_table import rule_findings
from inference_blueprints.spec.types import (
    Blueprint,
    Deployment,
    Disaggregated,
    Engine,
    Pool,
    Workers,
)
from inference_contracts.errors import Finding
from inference_contracts.units import MILLION, SECONDS_PER_HOUR

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
        """Return the blueprint in which it is the model's one deployment, with a fixed number of workers.

        The capacity shift is left out: it moves workers between the ends of a range, and is refused without.

        blueprint: What else there is.
        model_index: Which model is meant.
        """
        models = list(blueprint.spec.models)
        model = models[model_index]
        changes: dict[str, object] = {"deployments": [self.deployment(model.deployments[0].name)]}
        if model.engine.chosen != self.shape.engine:
            changes["engine"] = Engine.model_validate({self.shape.engine: {}})
        models[model_index] = model.model_copy(update=changes)
        spec = blueprint.spec.model_copy(update={"models": models, "capacity_shift": None})
        return blueprint.model_copy(update={"spec": spec})


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


# The cost of a configuration and whether it fits the pools, by the plan's arithmetic and rules.


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """The cost of a configuration. Smaller is better."""

    rank: float
    """USD per hour for its share of the used nodes, or its number of accelerators if a price is unknown."""
    accelerators: int
    """Number of accelerators of its workers."""
    usd_per_hour: float | None = field(compare=False)
    """USD per hour. None if a price is unknown."""

    def usd_per_million_tokens(self, tokens_per_second: float) -> float | None:
        """Return USD per million tokens at a load. None if the price is unknown.

        tokens_per_second: Prompt and answer tokens per second.
        """
        if self.usd_per_hour is None:
            return None
        return self.usd_per_hour / SECONDS_PER_HOUR / tokens_per_second * MILLION


@dataclass(frozen=True, slots=True)
class Costing:
    """Computes costs of the configurations of one model."""

    blueprint: Blueprint
    model_index: int
    prices: Prices
    """Known prices."""
    max_accelerators: int | None = None
    """Maximum number of accelerators of a configuration. None if only the pools limit it."""
    _costs: dict[TuningCandidate, Cost] = field(default_factory=dict)
    _findings: dict[TuningCandidate, list[Finding]] = field(default_factory=dict)

    @property
    def unpriced_pools(self) -> tuple[str, ...]:
        """Pools with an instance type whose price, for the purchase option is unknown."""
        return tuple(
            pool.name
            for pool in self.blueprint.spec.pools
            if any(kind.usd_per_hour is None for kind in self.prices.types_of(pool))
        )

    def cost(self, candidate: TuningCandidate) -> Cost:
        """Return the cost of a configuration.

        candidate: A configuration that fits the pools.
        """
        if candidate not in self._costs:
            self._costs[candidate] = self._compute(candidate)
        return self._costs[candidate]

    def has_room(self, candidate: TuningCandidate) -> bool:
        """Return whether a configuration fits the pools, quotas and devices. If so, fewer workers fit too."""
        if self.max_accelerators is not None and candidate.accelerators > self.max_accelerators:
            return False
        return all(_says_too_few(finding) for finding in self.refusals(candidate))

    def has_too_few(self, candidate: TuningCandidate) -> bool:
        """Return whether `blueprints validate` rejects a configuration because it has too few workers."""
        return any(_says_too_few(finding) for finding in self.refusals(candidate))

    def refusals(self, candidate: TuningCandidate) -> list[Finding]:
        """Return the errors that `blueprints validate` would report."""
        if candidate not in self._findings:
            blueprint = candidate.within(self.blueprint, self.model_index)
            found = [*rule_findings(blueprint), *serving_findings(blueprint)]
            self._findings[candidate] = [each for each in found if each.severity == "error"]
        return self._findings[candidate]

    def _compute(self, candidate: TuningCandidate) -> Cost:
        blueprint = candidate.within(self.blueprint, self.model_index)
        model = blueprint.spec.models[self.model_index]
        plan = build_plan(blueprint)
        pools = [
            summarise_pool(
                pool,
                plan,
                blueprint.releases,
                self.prices,
                cheapest_placement(workers_of_pool(plan, pool.name), self.prices.types_of(pool)),
            )
            for pool in blueprint.spec.pools
        ]
        used = {(model.name, model.deployments[0].name)}
        accelerators, usd = share_of(used, pools, summarise_processes(plan))
        rank = accelerators if self.unpriced_pools or usd is None else usd
        return Cost(float(rank), accelerators, usd)


def _says_too_few(finding: Finding) -> bool:
    """Whether more workers would fix it. The only error at `replicas` is a KV cache that is too small."""
    return finding.path[-1] == "replicas"
