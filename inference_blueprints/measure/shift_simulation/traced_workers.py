"""A recorded trace of request rates as demand of a blueprint's elastic workers.

A trace has requests per second, and the shift counts requests in flight. Both are connected by the time of a
request (Little's law). It is that of a worker that carries as many requests as the plan says, so that workers
at their limit serve the rate that the plan says. At a lower load requests are faster: this demand is then an
upper limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

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
from inference_contracts.records import dataclass
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
    ways: tuple[tuple[str, float], ...] = ()
    """Requests per second at the peak by the name of their way in: the model, or a streaming job."""


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

    @property
    def above_maximum(self) -> float:
        """Share of the demand that the largest number of workers cannot serve, from 0 to 1.

        The simulation leaves it out: no way to share the workers could serve it.
        """
        workers = self.moved.workers
        cut = numpy.maximum(0.0, self.values - workers.most * workers.capacity)
        return float(cut.sum() / self.values.sum())

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
            handover_seconds=workers.handover_seconds,
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
        if workers.batch_only:
            continue
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
            ways=tuple(
                (way.name or workers.model, way.means.peak_requests_per_second)
                for way in decoding.traffic.ways
                if way.kind != "queue"
            ),
        )


@dataclass(frozen=True, slots=True)
class WayTraces:
    """Recorded rates: one for all ways in, or one for each."""

    common: RequestRates | None
    """The trace for all. None if each way has its own."""
    by_name: Mapping[str, RequestRates]
    """WayTraces by the name of the model, the streaming job or the queue."""

    @classmethod
    def read(cls, given: Sequence[str]) -> WayTraces:
        """Read one file for all ways, or files with the name of a way in front, as in ``chat=rates.csv``.

        Raises UserError if a file cannot be read or has no requests, files differ in length, a name is there
        twice, or only some files have a name. A single file may have "=" in its own name.
        """
        if len(given) == 1 and ("=" not in given[0] or Path(given[0]).is_file()):
            return cls(_with_requests(given[0], "the trace"), {})
        pairs = [each.partition("=") for each in given]
        unnamed = [each for each, (_, equals, _) in zip(given, pairs, strict=True) if not equals]
        if unnamed:
            raise UserError(
                f"got --trace {unnamed[0]} beside others; give one file for all, or NAME=FILE for each "
                "model, streaming job or queue"
            )
        found: dict[str, RequestRates] = {}
        for name, _, path in pairs:
            if not name or not path:
                raise UserError(
                    f"got --trace {name}={path}; write NAME=FILE with a model, streaming job or queue"
                )
            if name in found:
                raise UserError(f"got two traces for {name}; give one")
            found[name] = _with_requests(path, f"the trace of {name}")
        hours = {name: rates.end_seconds - rates.start_seconds for name, rates in found.items()}
        if len(set(hours.values())) > 1:
            lengths = ", ".join(f"{name}: {seconds / 3600.0:g} h" for name, seconds in hours.items())
            raise UserError(f"got traces of different length ({lengths}); cut them to the same hours")
        return cls(None, found)

    @property
    def longest(self) -> RequestRates:
        """A trace: all have the same length."""
        return self.common or next(iter(self.by_name.values()))

    def check_names(self, known: Iterable[str]) -> None:
        """Check that each trace belongs to a way in. Raises UserError if one does not.

        known: Names of models, streaming jobs and queues.
        """
        names = list(dict.fromkeys(known))
        for name in self.by_name:
            if name not in names:
                raise UserError(f"got a trace for {name}; allowed are {', '.join(names)}")


def _with_requests(path: str, name: str) -> RequestRates:
    rates = RequestRates.read(Path(path))
    if not rates.peak:
        raise UserError(f"all rates of {name} are 0; give a trace with requests")
    return rates


def traced_workers(
    moved: Sequence[MovedWorkers], traces: WayTraces, seconds: float | None
) -> list[TracedWorkers]:
    """Return elastic workers with the demand of traces, whose peak is that of their workload.

    seconds: Measured time of a request. None for that of the latency profile.
    Raises UserError if a way in has no trace, or the time of a request is not known.
    """
    releases = list(dict.fromkeys(each.workers.release for each in moved))
    found: list[TracedWorkers] = []
    unknown: list[str] = []
    for each in moved:
        lasting = each.seconds if seconds is None else seconds
        if lasting is None:
            unknown.append(each.workers.model)
            continue
        # Workers of one release share its requests.
        values = lasting * _arriving(each, traces, _SEED + releases.index(each.workers.release))
        found.append(
            TracedWorkers(moved=each, seconds=lasting, is_measured=seconds is not None, values=values)
        )
    if unknown:
        raise UserError(
            f"no latency profile says how long a request of {', '.join(dict.fromkeys(unknown))} takes; give "
            "the mean time that you measured with --request-seconds"
        )
    return found


def _arriving(moved: MovedWorkers, traces: WayTraces, seed: int) -> Numbers:
    """Return requests per second in each minute, over all ways in."""
    if traces.common:
        ways = [(traces.common, moved.peak_requests_per_second)]
    else:
        names = dict(moved.ways) or {moved.workers.model: moved.peak_requests_per_second}
        missing = [name for name in names if name not in traces.by_name]
        if missing:
            raise UserError(
                f"got no trace for {', '.join(missing)}; give --trace {missing[0]}=FILE, or one file for all"
            )
        ways = [(traces.by_name[name], peak) for name, peak in names.items()]
    parts = [
        numpy.array(demand_per_minute(rates.scaled(peak / rates.peak), seed + 1000 * number))
        for number, (rates, peak) in enumerate(ways)
    ]
    total: Numbers = numpy.sum(parts, axis=0)
    return total


def learnt_bins(settings: ShiftSettings) -> int:
    """Return the number of minutes before anything is lent."""
    return round(settings.learn_seconds / BIN_SECONDS)
