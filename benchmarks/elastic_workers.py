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

- `elastic` scales by tokens in flight and requests without a first token, as the blueprint's default. Tuned
  are the share of a worker's load that is the target, and `scaleDownAfterSeconds`.
- `fixed` is one number. Tuned is the number.
- `CPU` is the HorizontalPodAutoscaler on processor use. It is taken as the share of the slots in use, which
  favours it: the processor of an engine is busy whenever a request runs. Tuned is the target.
- `queue` is KEDA on requests that wait at the engines (`vllm:num_requests_waiting`). Tuned are target,
  smallest number and stabilisation.
- `unanswered` is KEDA on requests without a first token, another reading of a queue. It counts prompts that
  are being processed, so it is seldom empty. Tuned is the target.
- `clairvoyant` is a schedule that knows the rates, and starts workers one cold start before they are needed.
  Tuned is the share of the workers' rate to use.

`kept` is the share of requests whose first token came within the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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
from inference_blueprints.autoscaling.scaled_object import ScaledObject
from inference_blueprints.autoscaling.worker_model import WorkerModel

_DATA = Path(__file__).parent / "data"
_SERVICES = ("m-large", "m-mid", "m-small")
_DAY_SECONDS = 86_400.0
_TUNED_DAYS, _ALL_DAYS = 4, 7
_WORKERS_AT_PEAK, _LEAST, _MOST = 60, 2, 120
_OBJECTIVE = 0.99
_GOAL_OF_QUEUE, _GOAL_OF_CLAIRVOYANT = 0.8, 1.25
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
    return [figure for name in _SERVICES for figure in _figures(name)]


def _figures(name: str) -> Iterator[Figure]:
    rates = RequestRates.read(_DATA / f"servegen_{name}.csv")
    tuned = rates.between(0.0, _TUNED_DAYS * _DAY_SECONDS)
    factor = _WORKERS_AT_PEAK * _WORKER.requests_per_second / tuned.peak
    rates = rates.scaled(factor)
    first = _Days.of(rates.between(0.0, _TUNED_DAYS * _DAY_SECONDS), 1)
    last = _Days.of(rates.between(_TUNED_DAYS * _DAY_SECONDS, _ALL_DAYS * _DAY_SECONDS), 2)
    found = {
        way: last.simulate(_cheapest(way, settings, first)(last.rates)) for way, settings in _WAYS.items()
    }
    own = found.pop("elastic")
    goals = {"queue": _GOAL_OF_QUEUE, "clairvoyant": _GOAL_OF_CLAIRVOYANT}
    for way, other in found.items():
        yield Figure(
            f"elastic_workers {name}, beside {way}",
            own.accelerator_hours,
            "GPU-hours",
            baseline=other.accelerator_hours,
            goal=goals.get(way),
            simulated=True,
        )
        yield Figure(
            f"elastic_workers {name}, kept, beside {way}",
            100 * own.within_objective,
            "%",
            baseline=100 * other.within_objective,
            simulated=True,
        )


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


def _elastic(share: float, down_seconds: int) -> _Setting:
    tokens = share * _WORKER.slots * _PROMPT_TOKENS
    triggers = {
        "tokens": ("AverageValue", tokens, _tokens),
        "unanswered": ("AverageValue", 6.43, _unanswered),
    }
    return lambda _: _autoscaled(triggers, _LEAST, down_seconds)


def _on_cpu(target: float) -> _Setting:
    return lambda _: _autoscaled({"cpu": ("Value", target, _slots_in_use)}, _LEAST, 300)


def _on_queue(target: float, least: int, down_seconds: int) -> _Setting:
    return lambda _: _autoscaled({"queue": ("AverageValue", target, _waiting)}, least, down_seconds)


def _on_unanswered(share: float) -> _Setting:
    triggers = {"unanswered": ("AverageValue", share * _UNANSWERED, _unanswered)}
    return lambda _: _autoscaled(triggers, _LEAST, 300)


def _autoscaled(
    triggers: dict[str, tuple[str, float, Signal]], least: int, down_seconds: int
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
    return (state.running + state.waiting) * _PROMPT_TOKENS


def _unanswered(state: RoleState) -> float:
    return state.waiting + state.prefilling


def _waiting(state: RoleState) -> float:
    return state.waiting


def _slots_in_use(state: RoleState) -> float | None:
    return state.running / (state.ready * _WORKER.slots) if state.ready else None


_WAYS: dict[str, list[_Setting]] = {
    "elastic": [_elastic(share, down) for share in (0.8, 0.85, 0.9, 0.95) for down in (60, 300)],
    "fixed": [_fixed(number) for number in range(50, 63, 2)],
    "CPU": [_on_cpu(target) for target in (0.7, 0.8, 0.85, 0.9)],
    "queue": [
        _on_queue(target, least, down)
        for target in (1.0, 5.0)
        for least in (30, 40, 50)
        for down in (300, 1800)
    ],
    "unanswered": [_on_unanswered(share) for share in (0.75, 0.8, 0.85, 0.9, 0.95)],
    "clairvoyant": [_clairvoyant(use) for use in (0.83, 0.86, 0.89, 0.92, 0.95)],
}
