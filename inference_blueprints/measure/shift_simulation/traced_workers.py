"""A recorded trace of request rates as demand of a blueprint's elastic workers.

A trace has requests per second, and the shift counts requests in flight. Both are connected by the time of a
request (Little's law). It is that of a worker that carries as many requests as the plan says, so that workers
at their limit serve the rate that the plan says. At a lower load requests are faster: this demand is then an
upper limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy

from inference_blueprints.serving.autoscaling.request_rates import RequestRates, demand_per_minute
from inference_blueprints.serving.checks.objective_checks import longest_start
from inference_blueprints.serving.estimates.worker_start import WorkerStart
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_blueprints.serving.scaling.worker_load import request_seconds, worker_load
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError
from inference_contracts.shift_names import ShiftConfiguration, ShiftedWorkers
from inference_decisions.capacity_shift.demand_history import BIN_SECONDS, Numbers
from inference_decisions.capacity_shift.shift_replay import PoolDemand
from inference_decisions.capacity_shift.shift_view import ShiftSettings

#: Of the random arrivals: the same trace always gives the same result.
_SEED = 20261123


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedWorkers:
    """Elastic workers whose floor the shift sets."""

    workers: ShiftedWorkers
    """What the shift knows of them."""
    places: int
    """Most places of batch in them."""
    reason: str
    """Why a worker carries as many requests as it does, as a clause."""
    peak_requests_per_second: float
    """Requests per second of their deployment at the peak of the workload."""
    seconds: float | None
    """Time of a request on a worker that carries as many (simulated). None without a latency profile."""
    start: WorkerStart
    """The longest start of a worker on a new node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedWorkers:
    """Elastic workers with a trace as their demand."""

    moved: MovedWorkers
    seconds: float
    """Time of a request that the demand was computed with."""
    is_measured: bool
    """Whether the user gave this time. Otherwise it is that of the latency profile."""
    values: Numbers
    """Requests in flight in bins of a minute."""

    def demand(self, first: int) -> PoolDemand:
        """Return the demand and what serves it.

        first: First minute that counts.
        """
        workers = self.moved.workers
        return PoolDemand(
            values=self.values,
            first=first,
            replicas=workers.most,
            capacity=workers.capacity,
            minimum=workers.least,
            places=self.moved.places,
        )


def moved_configuration(blueprint: Blueprint, plan: ServingPlan) -> ShiftConfiguration:
    """Return what the shift of a blueprint moves. Raises UserError if the blueprint has no capacity shift."""
    found = shift_configuration_of(blueprint, plan)
    if found is None or not found.workers:
        raise UserError(
            f"{blueprint.metadata.name} has no section 'capacityShift'; add "
            "'capacityShift: {action: observe}' to spec. It changes nothing, and needs 'observability', "
            "'batch' and elastic workers"
        )
    return found


def moved_workers(
    blueprint: Blueprint, plan: ServingPlan, configuration: ShiftConfiguration
) -> Iterator[MovedWorkers]:
    """Yield the elastic workers in the order of the configuration."""
    roles = {
        deployment.release: resolve(blueprint, model_index, index)
        for model_index, model in enumerate(plan.models)
        for index, deployment in enumerate(model.deployments)
    }
    for workers in configuration.workers:
        of_release = roles[workers.release]
        decoding = of_release[-1]
        elastic = [role for role in of_release if role.workers.scaled_by is not None]
        yield MovedWorkers(
            workers=workers,
            places=configuration.batch_share(workers),
            reason=worker_load(decoding).reason,
            peak_requests_per_second=decoding.traffic.requests_per_second,
            seconds=request_seconds(decoding),
            start=longest_start(elastic),
        )


def traced_workers(
    moved: Sequence[MovedWorkers], rates: RequestRates, seconds: float | None
) -> list[TracedWorkers]:
    """Return elastic workers with the demand of a trace, whose peak is that of their workload.

    rates: The trace.
    seconds: Measured time of a request. None for that of the latency profile.
    Raises UserError if the trace has no requests, or the time of a request is not known.
    """
    if not rates.peak:
        raise UserError("all rates of the trace are 0; give a trace with requests")
    releases = list(dict.fromkeys(each.workers.release for each in moved))
    found: list[TracedWorkers] = []
    unknown: list[str] = []
    for each in moved:
        lasting = each.seconds if seconds is None else seconds
        if lasting is None:
            unknown.append(each.workers.model)
            continue
        scaled = rates.scaled(each.peak_requests_per_second / rates.peak)
        # Workers of one release share its requests.
        arriving = demand_per_minute(scaled, _SEED + releases.index(each.workers.release))
        values = lasting * numpy.array(arriving)
        found.append(
            TracedWorkers(moved=each, seconds=lasting, is_measured=seconds is not None, values=values)
        )
    if unknown:
        raise UserError(
            f"no latency profile says how long a request of {', '.join(dict.fromkeys(unknown))} takes; give "
            "the mean time that you measured with --request-seconds"
        )
    return found


def learnt_bins(settings: ShiftSettings) -> int:
    """Return the number of minutes before anything is lent."""
    return round(settings.learn_seconds / BIN_SECONDS)
