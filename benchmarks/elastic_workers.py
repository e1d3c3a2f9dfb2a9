"""GPU-hours of elastic workers, beside other ways to choose their number, on a week of three real services.

The rates are those of ServeGen's services m-large, m-mid and m-small (`benchmarks/data/servegen.json`). They
are scaled so that the peak of the first four days needs sixty workers, and change evenly between the middles
of the windows of ten minutes. Arrivals are random around them. A worker is one of `elastic-g6e`: Qwen3-8B on
an L40S, 13 requests at once, 258 ms for a prompt, 10 s for an answer, a first token within two seconds. It is
ready 180 s after the decision: an assumption, of which the plan computes 26 s for image and weights. It costs
from the decision until its last request has ended. KEDA and the HorizontalPodAutoscaler are the functions of
`inference_blueprints/autoscaling`, which choose [the same numbers](control-plane.md#scaling-decisions) as the
real ones.

All settings are tuned on days 1 to 4, those of the other ways too: the cheapest with which 99 % of the
requests keep the objective. The figures are those of days 5 to 7 with these settings.

- `elastic` is the ScaledObject that the chart renders for `elastic-g6e`, with 2 to 120 workers and without
  its schedule. Tuned are the share of a worker's load that is the target of tokens in flight, and
  `scaleDownAfterSeconds`.
- `elastic as planned` is the same with the target that the plan computes and the default of five minutes.
- `fixed` is one number. Tuned is the number.
- `CPU` is the HorizontalPodAutoscaler on processor use. It is taken as the share of the slots in use, which
  favours it: the processor of an engine is busy whenever a request runs. Tuned is the target.
- `queue` is KEDA on requests that wait at the engines (`vllm:num_requests_waiting`). Tuned are target,
  smallest number and stabilisation.
- `unanswered` is KEDA on requests without a first token, another reading of a queue. It counts prompts that
  are being processed, so it is seldom empty. Tuned is the target.
- `clairvoyant` is a schedule that knows the rates, and starts workers one cold start before they are needed.
  Tuned is the share of the workers' rate to use.

`kept` is the share of requests whose first token came within the objective. The days are simulated by rates,
in steps of five seconds. The busiest, the steepest and the quietest hour of `elastic` are also simulated
request by request, each from as many workers as its first rate needs; the baseline is the same hour by rates.

The last days of m-mid have more requests than the first, and outages after which all requests return at once.
There the tuned number, CPU and the queue miss the objective, so their GPU-hours are those of a worse service.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.harness.figure import Figure
from benchmarks.harness.timing import BenchmarkError
from inference_blueprints.autoscaling.owners import (
    AutoscaledRole,
    ClairvoyantSchedule,
    FixedNumber,
    Owner,
    RoleState,
    Signal,
)
from inference_blueprints.autoscaling.rate_simulation import Simulated, arrivals_per_step, simulate_rates
from inference_blueprints.autoscaling.request_rates import RequestRates
from inference_blueprints.autoscaling.request_simulation import simulate_requests
from inference_blueprints.autoscaling.scaled_object import ScaledObject
from inference_blueprints.autoscaling.worker_model import WorkerModel
from inference_blueprints.catalog.chart_staging import stage_chart
from inference_blueprints.loading import load_blueprint
from inference_blueprints.local.emulator.helm import render
from inference_blueprints.resources import charts_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.targets.eks.model_values import deployment_values
from inference_blueprints.tools import helm

_DATA = Path(__file__).parent / "data"
_SERVICES = ("m-large", "m-mid", "m-small")
_DAY_SECONDS = 86_400.0
_HOUR_SECONDS = 3600
_TUNED_DAYS, _ALL_DAYS = 4, 7
_WORKERS_AT_PEAK, _LEAST, _MOST = 60, 2, 120
_OBJECTIVE = 0.99
_GOALS = {"queue": 0.8, "clairvoyant": 1.25}
_PROMPT_TOKENS = 3000
_WORKER = WorkerModel(
    slots=13, prefill_seconds=0.258, answer_seconds=10.0, cold_start_seconds=180.0, objective_seconds=2.0
)
#: Requests of a full worker without a first token.
_UNANSWERED = _WORKER.requests_per_second * _WORKER.prefill_seconds


@dataclass(frozen=True, slots=True)
class _Days:
    """Days of a service, with its arrivals."""

    rates: RequestRates
    arrivals: list[float]

    @classmethod
    def of(cls, rates: RequestRates, seed: int) -> _Days:
        """Draw the arrivals."""
        return cls(rates, arrivals_per_step(rates, seed))

    def simulate(self, owner: Owner) -> Simulated:
        """Simulate these days."""
        return simulate_rates(self.rates, self.arrivals, _WORKER, owner, most=_MOST)


#: Makes an owner for days: settings that were chosen are bound.
_Setting = Callable[[RequestRates], Owner]


def measure() -> list[Figure]:
    """Take the measurement."""
    with ProcessPoolExecutor() as processes:
        return [figure for figures in processes.map(_figures, _SERVICES) for figure in figures]


def _figures(name: str) -> list[Figure]:
    return list(_compared(name))


def _compared(name: str) -> Iterator[Figure]:
    rates = RequestRates.read(_DATA / f"servegen_{name}.csv")
    tuned = rates.between(0.0, _TUNED_DAYS * _DAY_SECONDS)
    rates = rates.scaled(_WORKERS_AT_PEAK * _WORKER.requests_per_second / tuned.peak)
    first = _Days.of(rates.between(0.0, _TUNED_DAYS * _DAY_SECONDS), 1)
    last = _Days.of(rates.between(_TUNED_DAYS * _DAY_SECONDS, _ALL_DAYS * _DAY_SECONDS), 2)
    chosen = {way: _cheapest(way, settings, first) for way, settings in _ways().items()}
    found = {way: last.simulate(setting(last.rates)) for way, setting in chosen.items()}
    own = found.pop("elastic")
    for way, other in found.items():
        yield Figure(
            f"elastic_workers {name}, beside {way}",
            own.accelerator_hours,
            "GPU-hours",
            baseline=other.accelerator_hours,
            goal=_GOALS.get(way),
            simulated=True,
        )
        yield _kept(f"{name}, beside {way}", own.within_objective, other.within_objective)
    for what, hour in _sampled_hours(last.rates):
        by_request = simulate_requests(hour, _WORKER, chosen["elastic"](hour), most=_MOST, seed=2)
        by_rate = _Days.of(hour, 2).simulate(chosen["elastic"](hour))
        share = by_request.within_objective / by_request.requests
        yield _kept(f"{name}, {what} hour request by request", share, by_rate.within_objective)


def _kept(name: str, share: float, baseline: float) -> Figure:
    return Figure(f"elastic_workers {name}, kept", 100 * share, "%", baseline=100 * baseline, simulated=True)


def _sampled_hours(rates: RequestRates) -> Iterator[tuple[str, RequestRates]]:
    """Yield the busiest hour, that with the largest rise, and the quietest with a request in each window."""
    hours = [
        rates.between(start, start + _HOUR_SECONDS)
        for start in range(int(rates.start_seconds), int(rates.end_seconds - _HOUR_SECONDS), _HOUR_SECONDS)
    ]
    served = [hour for hour in hours if all(window.rate for window in hour.windows)]
    yield "busiest", max(served, key=lambda hour: hour.peak)
    yield "steepest", max(served, key=lambda hour: hour.windows[-1].rate - hour.windows[0].rate)
    yield "quietest", min(served, key=lambda hour: hour.peak)


def _cheapest(way: str, settings: Iterable[_Setting], days: _Days) -> _Setting:
    """Return the cheapest setting that keeps the objective."""
    simulated = [(setting, days.simulate(setting(days.rates))) for setting in settings]
    keeping = [each for each in simulated if each[1].within_objective >= _OBJECTIVE]
    if not keeping:
        raise BenchmarkError(f"{way}: no setting keeps the objective on the first days")
    return min(keeping, key=lambda each: each[1].accelerator_hours)[0]


def _fixed(number: int) -> _Setting:
    return lambda _: FixedNumber(number)


def _clairvoyant(use: float) -> _Setting:
    return lambda rates: ClairvoyantSchedule(rates, _WORKER, use, _LEAST, _MOST)


def _elastic(share: float | None = None, down_seconds: int | None = None) -> _Setting:
    """Return the rendered object of the blueprint, for another number of workers and without its floors."""
    found = copy.deepcopy(_rendered())
    specification = found["spec"]
    specification |= {"minReplicaCount": _LEAST, "maxReplicaCount": _MOST}
    specification["triggers"] = [each for each in specification["triggers"] if each["type"] != "cron"]
    (tokens,) = (each for each in specification["triggers"] if each["name"] == "tokens-in-flight")
    if share is not None:
        tokens["metadata"]["threshold"] = str(share * _WORKER.slots * _PROMPT_TOKENS)
    down = specification["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
    if down_seconds is not None:
        down["stabilizationWindowSeconds"] = down_seconds
    signals: dict[str, Signal] = {
        "tokens-in-flight": _tokens,
        "queue-length": _unanswered,
        "requests-in-flight": _in_flight,
    }
    return lambda _: AutoscaledRole(ScaledObject.read(found), signals)


@cache
def _rendered() -> dict[str, Any]:
    """Return the ScaledObject of `elastic-g6e` as its chart renders it."""
    (model,) = build_plan(load_blueprint("elastic-g6e").blueprint).models
    (deployment,) = model.deployments
    with tempfile.TemporaryDirectory() as folder:
        objects = render(
            helm(),
            stage_chart(charts_directory() / deployment.chart, Path(folder)),
            release=deployment.release,
            namespace="inference",
            values=deployment_values(deployment, weights_bucket="weights"),
            kubernetes_version="1.35",
        )
    (found,) = (each for each in objects if each["kind"] == "ScaledObject")
    return found


def _on_cpu(target: float, down_seconds: int) -> _Setting:
    return lambda _: _autoscaled({"cpu": ("Value", target, _slots_in_use)}, _LEAST, down_seconds)


def _on_queue(target: float, least: int, down_seconds: int) -> _Setting:
    return lambda _: _autoscaled({"queue": ("AverageValue", target, _waiting)}, least, down_seconds)


def _on_unanswered(share: float) -> _Setting:
    triggers = {"unanswered": ("AverageValue", share * _UNANSWERED, _unanswered)}
    return lambda _: _autoscaled(triggers, _LEAST, 300)


def _autoscaled(
    triggers: Mapping[str, tuple[str, float, Signal]], least: int, down_seconds: int
) -> AutoscaledRole:
    """Return a role with the chart's pace: up at once by default, down by a tenth a minute."""
    behaviour: dict[str, Any] = {
        "scaleDown": {
            "stabilizationWindowSeconds": down_seconds,
            "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}],
        }
    }
    manifest = {
        "metadata": {"name": "worker"},
        "spec": {
            "minReplicaCount": least,
            "maxReplicaCount": _MOST,
            "pollingInterval": 15,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": behaviour}},
            "triggers": [
                {
                    "type": "prometheus",
                    "name": name,
                    "metricType": kind,
                    "metadata": {"query": name, "threshold": str(target), "ignoreNullValues": "false"},
                }
                for name, (kind, target, _) in triggers.items()
            ],
        },
    }
    signals = {name: signal for name, (_, _, signal) in triggers.items()}
    return AutoscaledRole(ScaledObject.read(manifest), signals)


def _tokens(state: RoleState) -> float:
    return _in_flight(state) * _PROMPT_TOKENS


def _in_flight(state: RoleState) -> float:
    return state.running + state.waiting


def _unanswered(state: RoleState) -> float:
    return state.waiting + state.prefilling


def _waiting(state: RoleState) -> float:
    return state.waiting


def _slots_in_use(state: RoleState) -> float | None:
    return state.running / (state.ready * _WORKER.slots) if state.ready else None


def _ways() -> dict[str, list[_Setting]]:
    """Return the settings of each way."""
    return {
        "elastic": [_elastic(share, down) for share in (0.8, 0.85, 0.9) for down in (60, 300)],
        "elastic as planned": [_elastic()],
        "fixed": [_fixed(number) for number in range(50, 63, 2)],
        "CPU": [_on_cpu(target, 300) for target in (0.5, 0.6, 0.65, 0.7, 0.8, 0.85)],
        "queue": [
            _on_queue(target, least, down)
            for target in (1.0, 5.0)
            for least in (30, 40, 50, 60)
            for down in (300, 1800)
        ],
        "unanswered": [_on_unanswered(share) for share in (0.75, 0.8, 0.85, 0.9, 0.95)],
        "clairvoyant": [_clairvoyant(use) for use in (0.83, 0.86, 0.89, 0.92, 0.95, 0.98)],
    }
