"""Layouts of workers on one pool, as the simulated engines of their serving plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inference_blueprints.measure.simulation.highest_rate import RateSearch
from inference_blueprints.measure.simulation.offline_replay import (
    SimulatedReplay,
    SyntheticLoad,
    replay_synthetic,
)
from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers, simulated_workers
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.types import Blueprint

#: Seconds of arrivals in a replay, within these numbers of requests.
_SECONDS = 60
_FEWEST_REQUESTS, _MAX_REQUESTS = 200, 2000


@dataclass(frozen=True, slots=True)
class LayoutCase:
    """What is served, where, and what is asked."""

    model: str
    instance_type: str
    """Of the one pool."""
    load: SyntheticLoad
    efa: bool = True
    """Whether the pool has EFA."""
    engine: str = "vllm"
    """The blueprint's word for it."""


def aggregated(replicas: int, size: int) -> dict[str, Any]:
    """Return a deployment's topology of workers that do both."""
    return {"aggregated": _workers(replicas, size)}


def disaggregated(prefill: tuple[int, int], decode: tuple[int, int]) -> dict[str, Any]:
    """Return a deployment's topology of prefill and decode workers.

    prefill, decode: Workers, and accelerators of each.
    """
    return {"disaggregated": {"prefill": _workers(*prefill), "decode": _workers(*decode)}}


def simulated(
    case: LayoutCase, topology: dict[str, Any], arguments: dict[str, Any] | None = None
) -> tuple[SimulatedWorkers, ...]:
    """Return the workers of a topology as the serving plan sizes them.

    case: What is served and where.
    topology: Of `aggregated` or `disaggregated`.
    arguments: Engine arguments of the user's.
    """
    blueprint = blueprint_of(case, topology, arguments or {})
    return simulated_workers(resolve(blueprint, 0, 0), build_plan(blueprint).models[0].deployments[0].workers)


def blueprint_of(
    case: LayoutCase, topology: dict[str, Any], arguments: dict[str, Any], routing: str = "kvAware"
) -> Blueprint:
    """Return a blueprint of one model in one deployment on one pool.

    topology: Of `aggregated` or `disaggregated`.
    routing: The blueprint's word for how requests are spread.
    """
    return Blueprint.model_validate(_document(case, topology, arguments, routing))


def rate_search(case: LayoutCase, workers: tuple[SimulatedWorkers, ...]) -> RateSearch:
    """Return a search for the rates that workers carry of a case's requests."""

    def measure(rate: float) -> SimulatedReplay:
        requests = min(_MAX_REQUESTS, max(_FEWEST_REQUESTS, round(rate * _SECONDS)))
        return replay_synthetic(workers, case.load, rate, requests)

    return RateSearch(measure)


def _workers(replicas: int, size: int) -> dict[str, Any]:
    return {"pool": "pool", "replicas": replicas, "tensorParallelSize": size}


def _document(
    case: LayoutCase, topology: dict[str, Any], arguments: dict[str, Any], routing: str
) -> dict[str, Any]:
    load = case.load
    pool: dict[str, Any] = {"name": "pool", "instanceTypes": [case.instance_type], "nodes": {"max": 100}}
    workload = {
        "inputTokens": load.input_tokens,
        "outputTokens": load.output_tokens,
        "sharedPrefixRatio": load.shared_prefix_ratio,
        "peakRequestsPerSecond": 1.0,
    }
    model = {
        "name": "model",
        "weights": {"huggingFace": case.model},
        "engine": {case.engine: {"args": arguments}},
        "routing": {routing: {}},
        "workload": workload,
        "deployments": [{"name": "main", **topology}],
    }
    return {
        "apiVersion": "inference-blueprints/v1alpha1",
        "kind": "Blueprint",
        "metadata": {"name": "bench"},
        "spec": {
            "environment": {"region": "us-west-2"},
            "cluster": {"eks": {"version": "1.35"}},
            "pools": [pool | {"efa": case.efa}],
            "models": [model],
        },
    }
