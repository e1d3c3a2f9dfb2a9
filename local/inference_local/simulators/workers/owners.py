"""Who decides the number of workers in a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from inference_blueprints.serving.autoscaling.autoscaler import Autoscaler
from inference_blueprints.serving.autoscaling.request_rates import RequestRates
from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject
from inference_local.simulators.workers.fleet import WorkerModel


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleState:
    """What can be measured of a role at a time."""

    now_seconds: float
    """The time."""
    wanted: int
    ready: int
    """`wanted`, `ready`: Workers that are wanted, and those of them that are ready."""
    running: float
    """Requests on ready workers."""
    waiting: float
    """Requests that wait for a slot."""
    prefilling: float
    """Requests on workers without a first token yet."""


class Owner(Protocol):
    """Decides the number of workers."""

    def wanted(self, state: RoleState) -> int:
        """Return the number of workers from now on."""
        ...


#: Time between two decisions (``--horizontal-pod-autoscaler-sync-period`` of kube-controller-manager).
DECISION_SECONDS = 15.0

#: A measured load of a role. None stands for a metric that cannot be read, NaN for one without a value.
Signal = Callable[[RoleState], float | None]


def always(_now_seconds: float) -> bool:
    """KEDA answers at any time."""
    return True


class AutoscaledRole:
    """KEDA with the HorizontalPodAutoscaler.

    scaled_object: The rules.
    signals: What its triggers measure, by name.
    keda_answers: Whether KEDA answers at a time.
    """

    def __init__(
        self,
        scaled_object: ScaledObject,
        signals: Mapping[str, Signal],
        *,
        keda_answers: Callable[[float], bool] = always,
    ) -> None:
        self._autoscaler = Autoscaler(scaled_object)
        self._signals = signals
        self._keda_answers = keda_answers

    def wanted(self, state: RoleState) -> int:
        """Return what KEDA and the HorizontalPodAutoscaler choose."""
        values = {name: signal(state) for name, signal in self._signals.items()}
        return self._autoscaler.decide(
            state.now_seconds,
            state.wanted,
            state.ready,
            values,
            keda_answers=self._keda_answers(state.now_seconds),
        ).desired


@dataclass(frozen=True, slots=True)
class FixedNumber:
    """The same number of workers at all times."""

    number: int

    def wanted(self, state: RoleState) -> int:  # noqa: ARG002 - the state changes nothing
        """Return the number."""
        return self.number


@dataclass(frozen=True, slots=True)
class ClairvoyantSchedule:
    """A schedule by the rates to come, which starts workers one cold start before they are needed."""

    rates: RequestRates
    """The rates, as they will be."""
    worker: WorkerModel
    """What a worker carries."""
    use: float
    """Share of the workers' rate to use: the rest is for chance."""
    minimum: int
    maximum: int
    """`minimum`, `maximum`: Smallest and largest number of workers."""

    def wanted(self, state: RoleState) -> int:
        """Return the number that the highest rate until the end of a cold start needs."""
        ahead = state.now_seconds + self.worker.cold_start_seconds + DECISION_SECONDS
        rate = self.rates.max_between(state.now_seconds, ahead)
        number = math.ceil(rate / (self.worker.requests_per_second * self.use))
        return max(self.minimum, min(self.maximum, number))
