"""The cost of a configuration and whether it fits the pools, by the plan's arithmetic and rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from inference_blueprints.measure.tuning.candidates import TuningCandidate
from inference_blueprints.report.plan.sections.pools import summarise_pool
from inference_blueprints.report.plan.sections.processes import summarise_processes
from inference_blueprints.report.pricing.deployment_share import share_of
from inference_blueprints.report.pricing.rates import Prices
from inference_blueprints.report.sizing.node_packing import cheapest_placement, workers_of_pool
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.rule_table import rule_findings
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding
from inference_contracts.units import MILLION, SECONDS_PER_HOUR


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
        return all(_says_too_few(finding) for finding in self._refusals(candidate))

    def has_too_few(self, candidate: TuningCandidate) -> bool:
        """Return whether `blueprints validate` rejects a configuration because it has too few workers."""
        return any(_says_too_few(finding) for finding in self._refusals(candidate))

    def _refusals(self, candidate: TuningCandidate) -> list[Finding]:
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
