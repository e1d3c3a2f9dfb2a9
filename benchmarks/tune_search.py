"""`blueprints tune` compared with a replay of the whole grid, on three workloads with two kinds of pool each.

`cost` is the cost of the chosen configuration. The baseline is the lowest cost of all configurations that
meet the objectives, and the goal is within 5 %. `search` is the duration of the search, which may take a
minute. It starts without earlier replays and uses the catalogue's latency profiles. `replays` is the number
of its replays. The baseline is the number for the whole grid: every shape that fits, with every number of
workers up to eight accelerators. Both judge a configuration by the same replays.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from itertools import product
from pathlib import Path

from benchmarks.harness.figure import BenchmarkError, Figure
from inference_blueprints.measure.tuning.candidates import Cost, Costing, TuningCandidate, WorkerShape, counts
from inference_blueprints.measure.tuning.evaluation import Evaluator, ReplayCache
from inference_blueprints.measure.tuning.profiles import Profiles, Say, Speed
from inference_blueprints.measure.tuning.tune import Stores, Tuning, demand_of, possible_shapes, tune
from inference_blueprints.report.pricing.rates import prices_for
from inference_blueprints.spec.types import Blueprint

_MAX_ACCELERATORS = 8
_GOAL, _GOAL_SECONDS = 1.05, 60.0
_ENGINES = ("vllm",)


@dataclass(frozen=True, slots=True)
class _Case:
    """A model on two kinds of pool, with its workload and objectives."""

    name: str
    model: str
    pools: tuple[str, str]
    workload: dict[str, float]
    objectives: dict[str, float]

    def figures(self) -> Iterator[Figure]:
        """Yield cost, duration and number of replays of the search."""
        with tempfile.TemporaryDirectory() as folder:
            stores = Stores(_Catalogued(Path(folder)), ReplayCache(Path(folder)))
            start = time.perf_counter()
            found = tune(
                self.blueprint(),
                0,
                _Silent(),
                max_accelerators=_MAX_ACCELERATORS,
                engines_looked_at=_ENGINES,
                stores=stores,
            )
            seconds = time.perf_counter() - start
            minimum, replays = _whole_grid(self.blueprint(), stores)
        if found.best is None or minimum is None:
            raise BenchmarkError(f"{self.name}: no configuration meets the objectives")
        yield Figure(
            f"tune_search {self.name}, cost",
            _per_million(found, found.best.cost),
            "USD per million tokens",
            baseline=_per_million(found, minimum),
            goal=_GOAL,
            simulated=True,
        )
        yield Figure(f"tune_search {self.name}, search", seconds, "s", goal=_GOAL_SECONDS)
        yield Figure(f"tune_search {self.name}, replays", found.replays, "replays", baseline=replays)

    def blueprint(self) -> Blueprint:
        """Return the platform. Its deployment is a placeholder, which the search replaces."""
        workers = {"pool": "pool-0", "replicas": 1, "tensorParallelSize": 1}
        model = {
            "name": "model",
            "weights": {"huggingFace": self.model},
            "workload": self.workload,
            "objectives": self.objectives,
            "deployments": [{"name": "main", "aggregated": workers}],
        }
        pools = [
            {"name": f"pool-{number}", "instanceTypes": [name], "nodes": {"max": _MAX_ACCELERATORS}}
            for number, name in enumerate(self.pools)
        ]
        return Blueprint.model_validate(
            {
                "apiVersion": "inference-blueprints/v1alpha1",
                "kind": "Blueprint",
                "metadata": {"name": "bench"},
                "spec": {
                    "environment": {"region": "us-east-1"},
                    "cluster": {"eks": {"version": "1.35"}},
                    "pools": pools,
                    "models": [model],
                },
            }
        )


class _Catalogued(Profiles):
    """The catalogue's latency profiles only, without recording new ones."""

    def record(self, wanted: Iterable[Speed], say: Say) -> dict[Speed, str]:  # noqa: ARG002 - nothing is recorded
        """Return the cases without a profile."""
        return {speed: "not in the catalogue" for speed in wanted if self.find(*astuple(speed)) is None}


class _Silent:
    """Ignores the progress of a search."""

    def say(self, line: str) -> None:
        """Show nothing."""

    def shapes(self, total: int) -> None:
        """Show nothing."""

    def replaying(self, candidate: TuningCandidate) -> None:
        """Show nothing."""

    def looked_at(self, shape: WorkerShape) -> None:
        """Show nothing."""


def _whole_grid(blueprint: Blueprint, stores: Stores) -> tuple[Cost | None, int]:
    """Replay every configuration; return the least cost within the objectives, and the number of replays."""
    costing = Costing(blueprint, 0, prices_for(blueprint.spec.environment.region), _MAX_ACCELERATORS)
    evaluator = Evaluator(costing, demand_of(blueprint, 0, None), stores.profiles.find, stores.replays)
    every = [
        TuningCandidate(shape, replicas)
        for shape in possible_shapes(costing, _ENGINES)
        if all(
            workers.profile for workers in evaluator.workers(TuningCandidate(shape, (1,) * len(shape.roles)))
        )
        for replicas in product(counts(_MAX_ACCELERATORS), repeat=len(shape.roles))
    ]
    keeping = [each for each in every if costing.has_room(each) and evaluator.keeps(each)]
    minimum = min((costing.cost(each) for each in keeping), default=None)
    return minimum, evaluator.replays + evaluator.from_cache


def _per_million(found: Tuning, cost: Cost) -> float:
    """Return a cost in US dollars per million tokens. Raise an error if it is unknown."""
    usd = cost.usd_per_million_tokens(found.tokens_per_second)
    if usd is None:
        raise BenchmarkError("a price is unknown")
    return usd


_CASES = (
    _Case(
        "Qwen3-8B on L40S and H100, 2,000 and 150 tokens",
        "Qwen/Qwen3-8B",
        ("g6e.2xlarge", "p5.4xlarge"),
        {"inputTokens": 2000, "outputTokens": 150, "peakRequestsPerSecond": 8},
        {"timeToFirstTokenP90Ms": 1000, "timePerOutputTokenP90Ms": 40},
    ),
    _Case(
        "Qwen3-8B on L40S and RTX PRO 6000, 6,000 and 200 tokens, half shared",
        "Qwen/Qwen3-8B",
        ("g6e.12xlarge", "g7e.2xlarge"),
        {"inputTokens": 6000, "outputTokens": 200, "sharedPrefixRatio": 0.5, "peakRequestsPerSecond": 4},
        {"timeToFirstTokenP90Ms": 1500, "timePerOutputTokenP90Ms": 30},
    ),
    _Case(
        "Qwen3-32B on H200 and L40S, 3,000 and 200 tokens",
        "Qwen/Qwen3-32B",
        ("p5en.48xlarge", "g6e.48xlarge"),
        {"inputTokens": 3000, "outputTokens": 200, "peakRequestsPerSecond": 6},
        {"timeToFirstTokenP90Ms": 1000, "timePerOutputTokenP90Ms": 25},
    ),
)


def measure() -> list[Figure]:
    """Take the measurement."""
    return [figure for case in _CASES for figure in case.figures()]
