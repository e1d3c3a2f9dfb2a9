"""Configurations replayed against the objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inference_blueprints.serving.capacity import ProfileFinder
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.simulation.highest_rate import Limits
from inference_blueprints.simulation.offline_replay import ReplayResult
from inference_blueprints.simulation.workers import SimulatedWorkers, simulated_workers
from inference_blueprints.tuning.candidates import Candidate
from inference_blueprints.tuning.costs import Cost, Costing
from inference_blueprints.tuning.replay_cache import ReplayCache, demand_digest, replay_key
from inference_blueprints.tuning.workload import Demand, Series, limits_of, router_of


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A configuration that was replayed.

    Parameters
    ----------
    candidate
        The configuration.
    cost
        What it costs.
    results
        Of its replays, simulated: of all, or up to the first that missed an objective.
    keeps
        Whether every replay kept the objectives.
    """

    candidate: Candidate
    cost: Cost
    results: tuple[ReplayResult, ...]
    keeps: bool

    @property
    def time_to_first_token_p90_ms(self) -> float:
        """The longest of its replays, simulated."""
        return max(result.time_to_first_token.p90 for result in self.results)

    @property
    def time_per_output_token_p90_ms(self) -> float:
        """The longest of its replays, simulated."""
        return max(result.time_per_output_token.p90 for result in self.results)


@dataclass(slots=True)
class Evaluator:
    """Replays configurations of one model, each once.

    Parameters
    ----------
    costing
        The model, and what configurations of it cost.
    demand
        What is asked.
    profile_of
        Where speeds come from.
    cache
        What was replayed before.
    on_replay
        Told of each configuration before it is replayed.
    """

    costing: Costing
    demand: Demand
    profile_of: ProfileFinder
    cache: ReplayCache
    on_replay: Callable[[Candidate], None] = field(default=lambda _: None)
    replays: int = field(default=0, init=False)
    from_cache: int = field(default=0, init=False)
    limits: Limits = field(init=False)
    _demand: str = field(init=False)
    _results: dict[tuple[Candidate, Series], ReplayResult] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        model = self.costing.blueprint.spec.models[self.costing.model_index]
        self.limits = limits_of(model)
        self._demand = demand_digest(self.demand)

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """Configurations with room that were judged, those that keep the objectives first, by cost.

        Of equal costs aggregated ones come first, for they have fewer parts, then those of the model's own
        engine. One that kept them in some of its replays, and was not given the others, is not among them.
        """
        replayed = dict.fromkeys(candidate for candidate, _ in self._results)
        found = [self._evaluation(each) for each in replayed if self.costing.has_room(each)]
        judged = [each for each in found if each is not None]
        return tuple(sorted(judged, key=self._rank))

    def may_keep(self, candidate: Candidate) -> bool:
        """Return whether a configuration has enough workers and keeps the objectives in its first replay.

        Parameters
        ----------
        candidate
            The configuration, whether there is room for it or not.
        """
        if self.costing.has_too_few(candidate):
            return False
        return self.limits.hold(self._replay(candidate, self.demand.series[0]))

    def keeps(self, candidate: Candidate) -> bool:
        """Return whether a configuration has enough workers and keeps the objectives in every replay.

        Parameters
        ----------
        candidate
            The configuration.
        """
        if self.costing.has_too_few(candidate):
            return False
        return all(self.limits.hold(self._replay(candidate, series)) for series in self.demand.series)

    def _rank(self, evaluation: Evaluation) -> tuple[Any, ...]:
        """Return what orders evaluations; no two are alike, so that their order is always the same."""
        shape = evaluation.candidate.shape
        own = self.costing.blueprint.spec.models[self.costing.model_index].engine.chosen
        simplest = (not shape.is_aggregated, shape.engine != own)
        return not evaluation.keeps, evaluation.cost, *simplest, evaluation.candidate

    def _evaluation(self, candidate: Candidate) -> Evaluation | None:
        """Judge a configuration by its replays; None where they do not say enough."""
        series = [each for each in self.demand.series if (candidate, each) in self._results]
        results = tuple(self._results[candidate, each] for each in series)
        keeps = all(self.limits.hold(result) for result in results)
        if keeps and len(series) < len(self.demand.series):
            return None
        return Evaluation(candidate, self.costing.cost(candidate), results, keeps)

    def _replay(self, candidate: Candidate, series: Series) -> ReplayResult:
        if (candidate, series) in self._results:
            return self._results[candidate, series]
        blueprint = candidate.within(self.costing.blueprint, self.costing.model_index)
        router = router_of(blueprint.spec.models[self.costing.model_index])
        workers = self.workers(candidate)
        key = replay_key(workers, self._demand, router, series)
        result = self.cache.get(key)
        if result is None:
            self.on_replay(candidate)
            result = self.demand.replay(workers, router, series)
            self.cache.put(key, result)
            self.replays += 1
        else:
            self.from_cache += 1
        self._results[candidate, series] = result
        return result

    def workers(self, candidate: Candidate) -> tuple[SimulatedWorkers, ...]:
        """Return a configuration's workers as the serving plan sizes them.

        Parameters
        ----------
        candidate
            The configuration.
        """
        index = self.costing.model_index
        blueprint = candidate.within(self.costing.blueprint, index)
        processes = build_plan(blueprint).models[index].deployments[0].workers
        return simulated_workers(resolve(blueprint, index, 0), processes, self.profile_of)
