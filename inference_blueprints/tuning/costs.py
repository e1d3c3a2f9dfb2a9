"""What a configuration costs, and whether there is room for it: by the plan's arithmetic and rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from inference_blueprints.errors import Finding
from inference_blueprints.planning.cost import share_of
from inference_blueprints.planning.placement import cheapest_placement, workers_of_pool
from inference_blueprints.planning.rates import Prices
from inference_blueprints.planning.summary import summarise_pool, summarise_processes
from inference_blueprints.serving import checks
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.rules.table import rules
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.tuning.candidates import Candidate

_SECONDS_AN_HOUR = 3600.0
_MILLION = 1e6


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """What a configuration costs; the lesser is the better.

    Parameters
    ----------
    rank
        US dollars an hour of its share of the used nodes; its accelerators where a price is unknown.
    accelerators
        Devices of its workers.
    usd_per_hour
        The price; None where it is unknown.
    """

    rank: float
    accelerators: int
    usd_per_hour: float | None = field(compare=False)

    def usd_per_million_tokens(self, tokens_per_second: float) -> float | None:
        """Return what a million tokens cost at a load; None where the price is unknown.

        Parameters
        ----------
        tokens_per_second
            Of prompts and answers, at the load.
        """
        if self.usd_per_hour is None:
            return None
        return self.usd_per_hour / _SECONDS_AN_HOUR / tokens_per_second * _MILLION


@dataclass(frozen=True, slots=True)
class Costing:
    """Costs of configurations of one model.

    Parameters
    ----------
    blueprint, model_index
        The model.
    prices
        What is known of prices.
    most_accelerators
        The most that a configuration may have; None for as many as the pools allow.
    """

    blueprint: Blueprint
    model_index: int
    prices: Prices
    most_accelerators: int | None = None
    _costs: dict[Candidate, Cost] = field(default_factory=dict)
    _findings: dict[Candidate, list[Finding]] = field(default_factory=dict)

    @property
    def unpriced_pools(self) -> tuple[str, ...]:
        """Pools of which a type has no known price, as the pool pays for it."""
        return tuple(
            pool.name
            for pool in self.blueprint.spec.pools
            if any(kind.usd_per_hour is None for kind in self.prices.types_of(pool))
        )

    def cost(self, candidate: Candidate) -> Cost:
        """Return what a configuration costs.

        Parameters
        ----------
        candidate
            One that the blueprint has room for.
        """
        if candidate not in self._costs:
            self._costs[candidate] = self._compute(candidate)
        return self._costs[candidate]

    def has_room(self, candidate: Candidate) -> bool:
        """Return whether pools, quotas and devices hold a configuration; fewer of its workers fit too.

        Parameters
        ----------
        candidate
            The configuration.
        """
        if self.most_accelerators is not None and candidate.accelerators > self.most_accelerators:
            return False
        return all(_says_too_few(finding) for finding in self._refusals(candidate))

    def has_too_few(self, candidate: Candidate) -> bool:
        """Return whether `blueprints validate` would refuse a configuration for its few workers.

        Parameters
        ----------
        candidate
            The configuration.
        """
        return any(_says_too_few(finding) for finding in self._refusals(candidate))

    def _refusals(self, candidate: Candidate) -> list[Finding]:
        """Return the errors that `blueprints validate` would find."""
        if candidate not in self._findings:
            blueprint = candidate.within(self.blueprint, self.model_index)
            found = [*rules(blueprint), *checks.findings(blueprint)]
            self._findings[candidate] = [each for each in found if each.severity == "error"]
        return self._findings[candidate]

    def _compute(self, candidate: Candidate) -> Cost:
        blueprint = candidate.within(self.blueprint, self.model_index)
        model = blueprint.spec.models[self.model_index]
        plan = build_plan(blueprint)
        pools = [
            summarise_pool(
                pool,
                plan,
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
    """Whether more workers would mend it: the one error at `replicas` is that their caches are too small."""
    return finding.path[-1] == "replicas"
