"""What the deployments of a queue or of a streaming job can do of its requests, beside all others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby

from inference_blueprints.serving.performance import (
    concurrent_requests,
    full_requests_per_second,
    min_answer_ms,
    most_requests_per_second,
    role_capacity,
    served_requests_per_second,
)
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.scaling.worker_load import used_by_hour
from inference_blueprints.serving.traffic import WayIn, own_part, serving_deployments
from inference_blueprints.spec.sections.pools.shared import shared_pools
from inference_blueprints.spec.types import BatchQueue, Spec, StreamingJob, Workload
from inference_contracts.records import dataclass
from inference_contracts.units import HOURS_PER_DAY, SECONDS_PER_HOUR

#: A job that is not finished after so many days is given up.
MAX_DAYS = 100


@dataclass(frozen=True, slots=True)
class ModelCapacity:
    """What all deployments of a queue, of a job or of a model can do of requests."""

    concurrent_requests: int
    """Requests of the mean length that all their engines run at once."""
    full_requests_per_second: float | None
    """Completed requests per second at the highest load (simulated); None if a deployment has no latency
    profile."""
    planned_requests_per_second: float | None = None
    """Completed requests per second at the stated peak, for which the plan has its workers (simulated)."""
    fastest_request_seconds: float | None = None
    """Shortest mean duration of a request, with no other request in its worker (simulated)."""
    left_by_hour: tuple[float, ...] | None = None
    """Completed requests per second in each hour of a day in UTC, beside requests that come in otherwise
    (simulated). None if unknown, or if the requests are a part of the model's own workload."""
    batch_by_hour: tuple[float, ...] | None = None
    """As `left_by_hour`, if no other queue had requests."""
    why_unknown: str = ""
    """Why the speed at the highest load is unknown, as a clause; empty if it is known."""
    most_requests_per_second: float | None = None
    """Completed requests per second that are not exceeded, also if the speed at the highest load is unknown
    (simulated); None if a deployment has no latency profile at all."""

    def requests_per_second_with(self, in_flight: int) -> float | None:
        """Return the most requests per second with a number of requests at once; None if unknown.

        By Little's law, requests per second = requests at once / duration of a request.
        """
        full, fastest = self.full_requests_per_second, self.fastest_request_seconds
        return full if full is None or not fastest else min(full, in_flight / fastest)


def longest_hours(requests: int, requests_per_second: Sequence[float]) -> float:
    """Return the hours that requests take if they begin at the worst hour; infinite if they never end.

    requests_per_second: What is completed in each hour of a day.
    """
    return max(_hours_from(requests, requests_per_second, start) for start in range(HOURS_PER_DAY))


def _hours_from(requests: int, requests_per_second: Sequence[float], start: int) -> float:
    left = float(requests)
    for hour in range(MAX_DAYS * HOURS_PER_DAY):
        done = requests_per_second[(start + hour) % HOURS_PER_DAY] * SECONDS_PER_HOUR
        if done >= left:
            return hour + left / done
        left -= done
    return float("inf")


def way_capacities(
    spec: Spec, ways: Iterable[BatchQueue | StreamingJob], roles: Iterable[ResolvedWorkers]
) -> Mapping[str, ModelCapacity]:
    """Return what the deployments of each queue or streaming job can do of its requests, by its name.

    roles: Workers of every role of every deployment, in the blueprint's order.
    """
    deployments = [tuple(group) for _, group in groupby(roles, key=lambda each: each.release)]
    return {
        way.name: reduce(
            _together,
            (
                deployment_capacity(workers, own_part(way, workers[0].traffic))
                for workers in deployments
                if workers[0].model.name == way.model and workers[0].deployment.name in names
            ),
        )
        for way in ways
        for names in [serving_deployments(spec, way)]
    }


def _together(one: ModelCapacity, other: ModelCapacity) -> ModelCapacity:
    """Return the capacity of two deployments of a model."""
    fastest = one.fastest_request_seconds, other.fastest_request_seconds
    return ModelCapacity(
        one.concurrent_requests + other.concurrent_requests,
        _sum(one.full_requests_per_second, other.full_requests_per_second),
        _sum(one.planned_requests_per_second, other.planned_requests_per_second),
        min((each for each in fastest if each is not None), default=None),
        _by_hour(one.left_by_hour, other.left_by_hour),
        _by_hour(one.batch_by_hour, other.batch_by_hour),
        one.why_unknown or other.why_unknown,
        _sum(one.most_requests_per_second, other.most_requests_per_second),
    )


def _by_hour(one: tuple[float, ...] | None, other: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if one is None or other is None:
        return None
    return tuple(map(sum, zip(one, other, strict=True)))


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def deployment_capacity(roles: tuple[ResolvedWorkers, ...], way: WayIn | None = None) -> ModelCapacity:
    """Return the capacity of one deployment: requests in flight are those that are decoded.

    roles: Workers of every role of the deployment.
    way: Its requests of one way in; all of them by default.
    """
    decoding, traffic = roles[-1], roles[0].traffic
    means = way.means if way else traffic.means
    at_once = concurrent_requests(decoding, means)
    ranks = decoding.workers.maximum * decoding.data_parallel_size
    known = [role_capacity(each, means=means) for each in roles]
    speeds = [each for each in known if each]
    most = most_requests_per_second(roles[0], means)
    if len(speeds) < len(roles):
        why = "no latency profile covers its requests"
        return ModelCapacity(ranks * at_once, None, why_unknown=why, most_requests_per_second=most)
    full = full_requests_per_second(speeds)
    others = [each for each in traffic.ways if way and (each.kind, each.name) != (way.kind, way.name)]
    live = [each for each in others if each.kind != "queue"]
    return ModelCapacity(
        ranks * at_once,
        full,
        served_requests_per_second(speeds),
        (min_answer_ms(roles, means) or 0.0) / 1000.0,
        _left(full, others, roles) if way and full is not None else None,
        _left(full, live, roles) if way and full is not None else None,
        "the latency profile ends at fewer requests at once than a worker holds" if full is None else "",
        most if full is None else full,
    )


def _left(
    full: float, others: Iterable[WayIn], roles: tuple[ResolvedWorkers, ...]
) -> tuple[float, ...] | None:
    """Return what a deployment completes of a way's requests in each hour, beside other ways.

    Each other way takes the share of the time in which the workers complete its requests at full load, a
    queue in the mean of a day.
    """
    busy = [0.0] * HOURS_PER_DAY
    for other in others:
        rate = _full(roles, other.means)
        if rate is None:
            return None
        for hour in range(HOURS_PER_DAY):
            busy[hour] += other.rate_in(hour) / rate * other.hours / HOURS_PER_DAY
    there = _there_by_hour(roles[-1])
    return tuple(full * part * max(0.0, 1.0 - share) for share, part in zip(busy, there, strict=True))


def _there_by_hour(decoding: ResolvedWorkers) -> Sequence[float]:
    """Return which part of all workers runs in each hour of a day.

    Of workers that the capacity shift lends, it is what real time leaves of the pool at its stated rates, in
    whole workers. If these are not known for all of real time there, it is all of them.
    """
    everything = [1.0] * HOURS_PER_DAY
    spec, own = decoding.blueprint.spec, decoding.workers
    shared = next((each for each in shared_pools(spec) if each.pool.name == own.pool), None)
    if shared is None or not own.is_lent:
        return everything
    free, lent = [float(shared.accelerators)] * HOURS_PER_DAY, 0
    for model_index, model in enumerate(spec.models):
        for index in range(len(model.deployments)):
            roles = resolve(decoding.blueprint, model_index, index)
            used = used_by_hour(roles)
            for workers in (each.workers for each in roles if each.workers.pool == own.pool):
                if workers.is_lent:
                    lent += workers.maximum * workers.accelerators
                    continue
                if used is None and workers.scaled_by is not None:
                    return everything
                for hour in range(HOURS_PER_DAY):
                    wanted = workers.maximum if used is None else math.ceil(used[hour] * workers.maximum)
                    free[hour] -= min(workers.maximum, max(workers.minimum, wanted)) * workers.accelerators
    part = own.maximum / lent
    return [min(1.0, max(own.minimum, math.floor(each * part)) / own.maximum) for each in free]


def _full(roles: tuple[ResolvedWorkers, ...], means: Workload) -> float | None:
    known = [role_capacity(each, means=means) for each in roles]
    speeds = [each for each in known if each]
    return full_requests_per_second(speeds) if len(speeds) == len(roles) else None
