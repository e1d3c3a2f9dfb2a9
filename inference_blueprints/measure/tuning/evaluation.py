"""Replays configurations and compares them with the latency objectives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from inference_blueprints.measure.simulation import offline_replay
from inference_blueprints.measure.simulation.highest_rate import holds
from inference_blueprints.measure.simulation.offline_replay import Latencies, SimulatedReplay
from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers, simulated_workers
from inference_blueprints.measure.tuning.candidates import Cost, Costing, TuningCandidate
from inference_blueprints.measure.tuning.replayed_workload import (
    Demand,
    Router,
    Series,
    objectives_of,
    router_of,
)
from inference_blueprints.serving.performance import ProfileFinder
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.types import JudgedObjective, LatencyKind, Objective, judge
from inference_blueprints.tools import cache_directory
from inference_contracts.errors import UserError

# Caches replays by their inputs, so that an interrupted search continues where it stopped.


@dataclass(frozen=True, slots=True)
class ReplayCache:
    """Replays in a folder, one file each."""

    directory: Path = field(default_factory=lambda: cache_directory() / "tuning" / "replays")

    def get(self, key: str) -> SimulatedReplay | None:
        """Return a replay that was kept; None where there is none.

        Raises UserError if its file is damaged.
        """
        path = self._path(key)
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            return SimulatedReplay(**values | {name: Latencies(**values[name]) for name in _LATENCIES})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise UserError(f"{path}: is not a cached replay: {error}; remove it") from error

    def put(self, key: str, result: SimulatedReplay) -> None:
        """Keep a replay; nobody ever sees half of its file.

        key, result: What it depends on, and what came of it.
        Raises UserError if the folder cannot be written.
        """
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as draft:
                json.dump(asdict(result), draft)
            Path(draft.name).replace(path)
        except OSError as error:
            raise UserError(
                f"{path.parent}: cannot be written: {error.strerror}; set XDG_CACHE_HOME to another folder"
            ) from error

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key}.json"


_LATENCIES = ("time_to_first_token", "time_per_output_token", "end_to_end")


def demand_digest(demand: Demand) -> str:
    """Return the digest of a demand for keys."""
    return _digest(demand.content)


def replay_key(workers: Sequence[SimulatedWorkers], demand: str, router: Router, series: Series) -> str:
    """Return what stands for a replay and everything that it depends on.

    workers, router, series: What is replayed and how.
    """
    described = [asdict(each) for each in workers]
    return _digest(
        {
            "dynamo": version("ai-dynamo"),
            "simulation": _simulation_digest(),
            "workers": described,
            "demand": demand,
            "router": router,
            "series": asdict(series),
        }
    )


@cache
def _simulation_digest() -> str:
    """Return the digest of the code that configures the simulated engine."""
    files = sorted(Path(offline_replay.__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A configuration that was replayed."""

    candidate: TuningCandidate
    cost: Cost
    results: tuple[SimulatedReplay, ...]
    """Simulated results: of all replays, or up to the first that missed an objective."""
    objectives: tuple[Objective, ...]

    @property
    def judged(self) -> tuple[JudgedObjective, ...]:
        """Each objective beside the longest of its replays, simulated."""
        return judge(self.objectives, self.percentile_ms)

    @property
    def keeps(self) -> bool:
        """Whether every replay met the objectives."""
        return all(each.met for each in self.judged)

    def percentile_ms(self, kind: LatencyKind, percentile: float) -> float:
        """Return a percentile of a latency: the longest of its replays, simulated, in milliseconds."""
        return max(result.percentile_ms(kind, percentile) for result in self.results)


@dataclass(slots=True)
class Evaluator:
    """Replays configurations of one model, each once."""

    costing: Costing
    """Computes the costs of the model's configurations."""
    demand: Demand
    profile_of: ProfileFinder
    """Finds latency profiles."""
    cache: ReplayCache
    """Holds the results of earlier replays."""
    on_replay: Callable[[TuningCandidate], None] = field(default=lambda _: None)
    """Called with each configuration before it is replayed."""
    replays: int = field(default=0, init=False)
    from_cache: int = field(default=0, init=False)
    objectives: tuple[Objective, ...] = field(init=False)
    _demand: str = field(init=False)
    _results: dict[tuple[TuningCandidate, Series], SimulatedReplay] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        model = self.costing.blueprint.spec.models[self.costing.model_index]
        self.objectives = objectives_of(model)
        self._demand = demand_digest(self.demand)

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """Evaluated configurations that fit the pools: first those that meet the objectives, then by cost.

        At equal cost, aggregated configurations come first because they have fewer parts, then those with
        the model's own engine. Configurations that met the objectives in some replays, and whose other
        replays were not run, are not included.
        """
        replayed = dict.fromkeys(candidate for candidate, _ in self._results)
        found = [self._evaluation(each) for each in replayed if self.costing.has_room(each)]
        judged = [each for each in found if each is not None]
        return tuple(sorted(judged, key=self._rank))

    def may_keep(self, candidate: TuningCandidate) -> bool:
        """Return whether a configuration has enough workers and meets the objectives in its first replay.

        candidate: A configuration, which need not fit the pools.
        """
        if self.costing.has_too_few(candidate):
            return False
        return holds(self.objectives, self._replay(candidate, self.demand.series[0]))

    def keeps(self, candidate: TuningCandidate) -> bool:
        """Return whether a configuration has enough workers and meets the objectives in every replay."""
        if self.costing.has_too_few(candidate):
            return False
        return all(holds(self.objectives, self._replay(candidate, series)) for series in self.demand.series)

    def _rank(self, evaluation: Evaluation) -> tuple[Any, ...]:
        """Return the sort key of an evaluation. Keys are unique, so that the order is deterministic."""
        shape = evaluation.candidate.shape
        own = self.costing.blueprint.spec.models[self.costing.model_index].engine.chosen
        simplest = (not shape.is_aggregated, shape.engine != own)
        return not evaluation.keeps, evaluation.cost, *simplest, evaluation.candidate

    def _evaluation(self, candidate: TuningCandidate) -> Evaluation | None:
        """Evaluate a configuration by its replays. None if more replays are needed."""
        series = [each for each in self.demand.series if (candidate, each) in self._results]
        results = tuple(self._results[candidate, each] for each in series)
        found = Evaluation(candidate, self.costing.cost(candidate), results, self.objectives)
        return None if found.keeps and len(series) < len(self.demand.series) else found

    def _replay(self, candidate: TuningCandidate, series: Series) -> SimulatedReplay:
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

    def workers(self, candidate: TuningCandidate) -> tuple[SimulatedWorkers, ...]:
        """Return the simulated workers of a configuration, sized by the serving plan."""
        index = self.costing.model_index
        blueprint = candidate.within(self.costing.blueprint, index)
        processes = build_plan(blueprint).models[index].deployments[0].workers
        return simulated_workers(resolve(blueprint, index, 0), processes, self.profile_of)
