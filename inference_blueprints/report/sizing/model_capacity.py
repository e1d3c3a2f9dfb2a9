"""What a model's engines run at once, and how fast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from inference_blueprints.serving.engines.worker_sizing import worker_sizing
from inference_blueprints.serving.performance.role_capacity import concurrent_requests, role_capacity
from inference_blueprints.serving.resolved import ResolvedWorkers


@dataclass(frozen=True, slots=True)
class ModelCapacity:
    """Capacity of all deployments of a model."""

    concurrent_requests: int
    """Requests of the mean length that all its engines run at once."""
    full_requests_per_second: float | None
    """Completed requests per second at the highest load (simulated); None if a deployment has no latency
    profile."""


def model_capacities(roles: Iterable[ResolvedWorkers]) -> Mapping[str, ModelCapacity]:
    """Return the capacity of each model.

    roles: Workers of every role of every deployment, in the blueprint's order.
    """
    capacities: dict[str, ModelCapacity] = {}
    for _, group in groupby(roles, key=lambda each: each.release):
        workers = list(group)
        name, added = workers[0].model.name, _of_deployment(workers)
        sofar = capacities.get(name, ModelCapacity(0, 0.0))
        speeds = sofar.full_requests_per_second, added.full_requests_per_second
        capacities[name] = ModelCapacity(
            sofar.concurrent_requests + added.concurrent_requests,
            None if None in speeds else sum(speed for speed in speeds if speed is not None),
        )
    return capacities


def _of_deployment(roles: list[ResolvedWorkers]) -> ModelCapacity:
    """Return the capacity of one deployment: requests in flight are those that are decoded."""
    decoding = roles[-1]
    at_once = concurrent_requests(decoding.model.workload, worker_sizing(decoding))
    ranks = decoding.workers.maximum * decoding.data_parallel_size
    known = [role_capacity(each) for each in roles]
    speeds = [each.full_requests_per_second for each in known if each]
    return ModelCapacity(ranks * at_once, min(speeds) if len(speeds) == len(roles) else None)
