"""GPU-hours of elastic workers, beside other ways to choose their number, on weeks of three real services.

The rates are those of ServeGen's services m-large, m-mid and m-small (`benchmarks/data/servegen.json`). They
are scaled so that the peak of the first four days needs sixty workers, and change evenly between the middles
of the windows of ten minutes. Arrivals are random around them. A worker is one of `elastic-g6e` as its plan
computes it. The rows `a worker` are from the plan: requests at once, time of a request, and the time from the
decision for a worker until it is ready on a new node, with published times for what nobody measured. A worker
costs from the decision until its last request has ended. KEDA and the HorizontalPodAutoscaler are the
functions of `inference_blueprints/serving/autoscaling`, which choose
[the same numbers](control-plane.md#scaling-decisions) as the real ones.

All settings are tuned on days 1 to 4 of the first week, those of the other ways too: the cheapest with which
99 % of the requests have their first token within the objective. Then they meet loads that were not tuned on:

- `days 5 to 7` of the same week;
- `week 2`: the seven days after it;
- `spikes`: days 5 to 7 with nine spikes, of a sixth, a third and a half of the tuned peak, each for 5, 15 and
  45 minutes, at random times. Each begins and ends within a minute.

`late` is the share of the requests that miss the objective there with the tuned settings of `elastic`.
GPU-hours are compared at the same objective. So a way that misses it on a load is `raised`: it gets the
cheapest setting that keeps the objective on that load, as if the load had been known. If none keeps it, the
row says so and has no goal. `raised` before `beside` is `elastic`, after it the other way.

Where `elastic` is late, load rises faster than workers start. Week 2 of m-mid and m-small has outages, after
which all requests return within ten minutes; on the days of the tuning, m-mid has one and m-small none. A
spike is there within a minute. Until further workers are ready, only free ones can serve the rise, so each
way that does not know the future needs them all the time: a lower `target`, a longer `scaleDownAfterSeconds`
or a floor. The raised rows have their price.

- `elastic` is the ScaledObject that the chart renders for `elastic-g6e`, with 2 to 120 workers and without
  its schedule. Tuned are the share of a worker's load that is the target of tokens in flight, and
  `scaleDownAfterSeconds`.
- `elastic as planned` is the same with the target that the plan computes and the default of five minutes.
- `fixed` is one number. Tuned is the number.
- `CPU` is the HorizontalPodAutoscaler on processor use. It is taken as the share of the slots in use, which
  favours it: the processor of an engine is busy whenever a request runs. Tuned is the target.
- `queue` is KEDA on requests that wait at the engines (`vllm:num_requests_waiting`). Tuned are the smallest
  number and the stabilisation.
- `unanswered` is KEDA on requests without a first token, another reading of a queue. It counts prompts that
  are being processed, so it is seldom empty. Tuned is the target. It is the stronger of the two readings, so
  the goal beside a queue, at most 0.8, applies to both; until 2026-11-28 it applied to `queue` only.
- `clairvoyant` is a schedule that knows the rates, and starts workers one cold start before they are needed.
  Tuned is the share of the workers' rate to use.

The days are simulated by rates, in steps of five seconds. The busiest, the steepest and the quietest hour of
days 5 to 7 are also simulated request by request, each from as many workers as its first rate needs. A row
beside it has the same hours by rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.harness.figure import BenchmarkError, Figure
from benchmarks.harness.load_spikes import drawn_spikes, with_spikes
from benchmarks.harness.planned_worker import (
    MAXIMUM,
    Ladder,
    PlannedWorker,
    ScalingWays,
    Setting,
    planned_worker,
)
from inference_blueprints.serving.autoscaling.request_rates import RequestRates
from inference_contracts.units import SECONDS_PER_DAY, SECONDS_PER_HOUR
from inference_local.simulators.workers.fleet import WorkerModel
from inference_local.simulators.workers.rate_simulation import Simulated, arrivals_per_step, simulate_rates
from inference_local.simulators.workers.request_simulation import simulate_requests

_DATA = Path(__file__).parent / "data"
_SERVICES = ("m-large", "m-mid", "m-small")
_TUNED_DAYS, _ALL_DAYS = 4, 7
_WORKERS_AT_PEAK = 60
_KEPT, _LATE_PERCENT = 0.99, 1.0
_GOALS = {"queue": 0.8, "unanswered": 0.8, "clairvoyant": 1.25}
_SPIKES = (1 / 6, 1 / 3, 1 / 2)
_SPIKE_SECONDS = (300.0, 900.0, 2700.0)
_SEEDS = {"tuned": 1, "days 5 to 7": 2, "week 2": 3, "spikes": 4}
_OWN = "elastic"
#: Ways beside which each load is compared; all of them on the days after the tuned ones.
_COMPARED = ("fixed", "queue", "unanswered", "clairvoyant")


@dataclass(frozen=True, slots=True)
class _Days:
    """Days of a service, with their arrivals."""

    rates: RequestRates
    arrivals: list[float]
    worker: WorkerModel

    @classmethod
    def of(cls, rates: RequestRates, seed: int, worker: WorkerModel) -> _Days:
        """Draw the arrivals."""
        return cls(rates, arrivals_per_step(rates, seed), worker)

    def simulate(self, setting: Setting) -> Simulated:
        """Simulate these days."""
        return simulate_rates(self.rates, self.arrivals, self.worker, setting(self.rates), maximum=MAXIMUM)


def measure() -> list[Figure]:
    """Take the measurement."""
    worker = planned_worker("elastic-g6e")
    with ProcessPoolExecutor() as processes:
        found = processes.map(partial(_figures, worker), _SERVICES)
        return [*_of_the_worker(worker.model), *(figure for figures in found for figure in figures)]


def _of_the_worker(worker: WorkerModel) -> Iterator[Figure]:
    name = "elastic_workers a worker"
    yield Figure(f"{name}, requests at once", worker.slots, "requests", simulated=True)
    yield Figure(f"{name}, time of a request", worker.service_seconds, "s", simulated=True)
    yield Figure(f"{name}, time to start", worker.cold_start_seconds, "s", simulated=True)


def _figures(worker: PlannedWorker, service: str) -> list[Figure]:
    return list(_compared(worker, service))


def _compared(worker: PlannedWorker, service: str) -> Iterator[Figure]:
    ladders = ScalingWays(worker).ladders()
    loads = _loads(service, worker.model)
    tuned = _Days.of(loads.pop("tuned"), _SEEDS["tuned"], worker.model)
    chosen = {way: _tuned(way, each, tuned) for way, each in ladders.items()}
    for load, rates in loads.items():
        days = _Days.of(rates, _SEEDS[load], worker.model)
        name = f"elastic_workers {service}, {load}"
        own = days.simulate(chosen[_OWN])
        late = 100 * (1 - own.within_objective)
        yield Figure(f"{name}, late", late, "% of the requests", goal=_LATE_PERCENT, simulated=True)
        own, raised = _at_the_objective(own, ladders[_OWN], days)
        name += raised
        for way in _COMPARED if load in ("week 2", "spikes") else [each for each in chosen if each != _OWN]:
            other, how = _at_the_objective(days.simulate(chosen[way]), ladders[way], days)
            both_keep = min(own.within_objective, other.within_objective) >= _KEPT
            yield Figure(
                f"{name}, beside {way}{how}",
                own.accelerator_hours,
                "GPU-hours",
                baseline=other.accelerator_hours,
                goal=_GOALS.get(way) if both_keep else None,
                simulated=True,
            )
    yield from _sampled(service, loads["days 5 to 7"], chosen[_OWN], worker.model)


def _loads(service: str, worker: WorkerModel) -> dict[str, RequestRates]:
    """Return the days to tune on and the loads to compare on, by name."""
    week, second = (RequestRates.read(_DATA / f"servegen_{service}{end}.csv") for end in ("", "_week_2"))
    peak = _WORKERS_AT_PEAK * worker.requests_per_second
    factor = peak / week.between(0.0, _TUNED_DAYS * SECONDS_PER_DAY).peak
    week = week.scaled(factor)
    last = week.between(_TUNED_DAYS * SECONDS_PER_DAY, _ALL_DAYS * SECONDS_PER_DAY)
    spikes = drawn_spikes(last, [share * peak for share in _SPIKES], _SPIKE_SECONDS, _SEEDS["spikes"])
    return {
        "tuned": week.between(0.0, _TUNED_DAYS * SECONDS_PER_DAY),
        "days 5 to 7": last,
        "week 2": second.scaled(factor),
        "spikes": with_spikes(last, spikes),
    }


def _tuned(way: str, ladders: Sequence[Ladder], days: _Days) -> Setting:
    """Return the cheapest setting that keeps the objective. A way of one setting has nothing to tune."""
    found = _cheapest(ladders, days)
    if found is None:
        if [len(each) for each in ladders] == [1]:
            return ladders[0][0]
        raise BenchmarkError(f"{way}: no setting keeps the objective on the first days")
    return found[0]


def _cheapest(ladders: Sequence[Ladder], days: _Days) -> tuple[Setting, Simulated] | None:
    """Return the cheapest setting of all ladders that keeps the objective, or None."""
    keeping = [found for found in (_first_that_keeps(each, days) for each in ladders) if found is not None]
    return min(keeping, key=lambda each: each[1].accelerator_hours, default=None)


def _first_that_keeps(ladder: Ladder, days: _Days) -> tuple[Setting, Simulated] | None:
    """Return the first setting that keeps the objective, by halving; None if the last does not."""
    low, high = 0, len(ladder)
    kept: Simulated | None = None
    while low < high:
        middle = (low + high) // 2
        simulated = days.simulate(ladder[middle])
        if simulated.within_objective >= _KEPT:
            high, kept = middle, simulated
        else:
            low = middle + 1
    return None if kept is None else (ladder[high], kept)


def _at_the_objective(tuned: Simulated, ladders: Sequence[Ladder], days: _Days) -> tuple[Simulated, str]:
    """Return a way with its tuned setting, or with one that keeps the objective on these days, and which."""
    if tuned.within_objective >= _KEPT:
        return tuned, ""
    raised = _cheapest(ladders, days)
    if raised is not None:
        return raised[1], " raised"
    maximum = max((days.simulate(each[-1]) for each in ladders), key=lambda each: each.within_objective)
    return maximum, f" which keeps at most {100 * maximum.within_objective:.1f} %"


def _sampled(service: str, rates: RequestRates, setting: Setting, worker: WorkerModel) -> Iterator[Figure]:
    """Yield the late requests of sampled hours, request by request and by rates."""
    requests = late = by_rates = 0.0
    for hour in _sampled_hours(rates):
        found = simulate_requests(hour, worker, setting(hour), maximum=MAXIMUM, seed=2)
        requests += found.requests
        late += found.requests - found.within_objective
        by_rates += found.requests * (1 - _Days.of(hour, 2, worker).simulate(setting).within_objective)
    name, unit = f"elastic_workers {service}, sampled hours", "% of the requests"
    yield Figure(f"{name} request by request, late", 100 * late / requests, unit, simulated=True)
    yield Figure(f"{name} by rates, late", 100 * by_rates / requests, unit, simulated=True)


def _sampled_hours(rates: RequestRates) -> Iterator[RequestRates]:
    """Yield the busiest hour, that with the largest rise, and the quietest with a request in each window."""
    hours = [
        rates.between(start, start + SECONDS_PER_HOUR)
        for start in range(
            int(rates.start_seconds), int(rates.end_seconds - SECONDS_PER_HOUR), SECONDS_PER_HOUR
        )
    ]
    served = [hour for hour in hours if all(window.rate for window in hour.windows)]
    yield max(served, key=lambda hour: hour.peak)
    yield max(served, key=lambda hour: hour.windows[-1].rate - hour.windows[0].rate)
    yield min(served, key=lambda hour: hour.peak)
