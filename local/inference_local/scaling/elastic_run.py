"""Lets the workers of a running platform follow the load, by KEDA's decisions over a real Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from inference_blueprints.measure.completions.completion_client import RequestOutcome
from inference_blueprints.serving.autoscaling.autoscaler import Autoscaler
from inference_blueprints.serving.autoscaling.scaled_object import MetricTrigger, ScaledObject
from inference_contracts.units import SECONDS_PER_HOUR
from inference_local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget
from inference_local.report.report_types import ModelRun
from inference_local.scaling.local_shift import LocalShift, RoleNumbers
from inference_local.scaling.operator_stand_in import ElasticRole, OperatorStandIn
from inference_local.scaling.scaling_outcome import ScalingDecision, ScalingOutcome, WorkerSample
from inference_local.serving.local_serving import LocalServing

#: By how much windows, periods and starts of workers are shortened.
TIME_FACTOR = 15.0
#: Time between two decisions of the HorizontalPodAutoscaler (``--horizontal-pod-autoscaler-sync-period``).
_SYNC_SECONDS = 15.0
#: The clock of schedules begins here: Sunday, 2026-11-01, 12:00 UTC, outside of working hours everywhere.
_BEGIN = 1793534400.0


class Operator(Protocol):
    """What makes worker processes of a wanted number of workers."""

    @property
    def wanted(self) -> int:
        """Number of workers that are wanted."""
        ...

    @property
    def serving(self) -> int:
        """Workers whose process runs and is not ending."""
        ...

    @property
    def occupying(self) -> int:
        """Workers that hold accelerators."""
        ...

    def step(self, now_seconds: float, wanted: int) -> None:
        """Bring the number of workers nearer to the wanted one."""
        ...


class ElasticRun:
    """Decides and scales in the background. Use it as a context manager around the load.

    serving: The running platform.
    prometheus: Scrapes its frontends and workers.
    roles: The elastic roles, each with its rendered object.
    targets: Returns what there is to scrape now.
    operator: Returns what makes the workers of a role.
    floor: Returns the present floor of a role, if something else than its object decides about it.
    shift: Decides about the numbers of workers on pools that models share. None if there is none.
    lent: Roles that serve batch alone, whose number `shift` sets.
    """

    def __init__(
        self,
        serving: LocalServing,
        prometheus: LocalPrometheus,
        roles: Sequence[tuple[ElasticRole, ScaledObject]],
        targets: Callable[[], Iterable[ScrapeTarget]],
        *,
        operator: Callable[[ElasticRole], Operator] | None = None,
        floor: Callable[[ElasticRole], int] | None = None,
        shift: LocalShift | None = None,
        lent: Sequence[ElasticRole] = (),
    ) -> None:
        self._targets = targets
        self._floor = floor
        made = operator or partial(OperatorStandIn, serving.workers)
        self._serving = serving
        self._prometheus = prometheus
        self._roles = [(role, rules, Autoscaler(rules), made(role)) for role, rules in roles]
        self._shift = shift
        self._lent = [(role, made(role)) for role in lent]
        self._decisions: list[ScalingDecision] = []
        self._samples: list[WorkerSample] = []
        self._gpu_seconds: dict[str, float] = dict.fromkeys(
            (role.model for role in (*(role for role, _ in roles), *lent)), 0.0
        )
        self._ready: dict[str, int] = {}
        self._before = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="elastic run", daemon=True)
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self._begin = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
        if self._error is not None and exception is None:
            raise self._error

    @property
    def serving(self) -> LocalServing:
        """The running platform."""
        return self._serving

    @property
    def roles(self) -> tuple[tuple[ElasticRole, ScaledObject], ...]:
        """The elastic roles, each with its object."""
        return tuple((role, rules) for role, rules, _, _ in self._roles)

    @property
    def samples(self) -> tuple[WorkerSample, ...]:
        """The workers so far."""
        return tuple(self._samples)

    def outcome(self, runs: Sequence[ModelRun]) -> ScalingOutcome:
        """Return how the workers followed the load.

        runs: What the clients of the models saw.
        """
        return self.outcome_of([each for run in runs for each in run.result.outcomes])

    def outcome_of(self, outcomes: Sequence[RequestOutcome], clients: int | None = None) -> ScalingOutcome:
        """Return how the workers followed the load.

        outcomes: What clients saw.
        clients: How many sent requests at once, at most. None if requests were not sent by clients.
        """
        failed = [each for each in outcomes if each.failure is not None]
        hours = self._samples[-1].seconds / SECONDS_PER_HOUR
        maximum = dict.fromkeys(self._gpu_seconds, 0)
        for role, rules, _, _ in self._roles:
            maximum[role.model] += role.accelerators * rules.maximum
        for role, _ in self._lent:
            maximum[role.model] += role.accelerators * role.workers.maximum
        held = {model: seconds / SECONDS_PER_HOUR for model, seconds in self._gpu_seconds.items()}
        return ScalingOutcome(
            workers_min=min(each.ready for each in self._samples),
            workers_max=max(each.ready for each in self._samples),
            decisions=tuple(self._decisions),
            cut_streams=sum(each.first_token_seconds is not None for each in failed),
            lost=len(failed),
            requests=len(outcomes),
            clients=clients,
            gpu_hours=sum(held.values()),
            gpu_hours_at_most=sum(maximum.values()) * hours,
            unused_gpus={model: maximum[model] - held[model] / hours if hours else 0.0 for model in maximum},
            time_factor=TIME_FACTOR,
            start_seconds={role.name: role.start_seconds for role, _ in self._numbers()},
            samples=tuple(self._samples),
        )

    def step(self, now: float) -> None:
        """Decide and scale once. The context manager does it in the background.

        now: Seconds since the start of the run.
        """
        for role, stand_in in self._numbers():
            self._gpu_seconds[role.model] += role.accelerators * stand_in.occupying * (now - self._before)
        self._before = now
        self._decide(now)
        self._prometheus.scrape(self._targets())

    def _follow(self) -> None:
        try:
            while not self._stopped.is_set():
                now = time.monotonic() - self._begin
                self.step(now)
                self._stopped.wait(
                    max(0.0, _SYNC_SECONDS / TIME_FACTOR - (time.monotonic() - self._begin - now))
                )
        except BaseException as error:  # noqa: BLE001 -- raised where the run waits
            self._error = error

    def _numbers(self) -> Iterator[tuple[ElasticRole, Operator]]:
        """Yield all roles whose number changes, with what makes their workers."""
        yield from ((role, stand_in) for role, _, _, stand_in in self._roles)
        yield from self._lent

    def _decide(self, now: float) -> None:
        ready = 0
        if self._shift is not None:
            live: dict[tuple[str, str], RoleNumbers] = {
                (role.deployment.plan.release, role.workers.role): RoleNumbers(
                    stand_in.wanted, self._ready_of(role, stand_in)
                )
                for role, stand_in in self._numbers()
            }
            self._shift.step(_BEGIN + now * TIME_FACTOR, live)
        for role, stand_in in self._lent:
            ready += self._lend(now, role, stand_in)
        for role, rules, autoscaler, stand_in in self._roles:
            role_ready = self._ready_of(role, stand_in)
            readings = self._readings(rules)
            decision = autoscaler.decide(_BEGIN + now * TIME_FACTOR, stand_in.wanted, role_ready, readings)
            desired, reason = self._within_range(role, decision.desired, decision.reason)
            self._decisions.append(
                ScalingDecision(now, role.name, stand_in.wanted, role_ready, readings, desired, reason)
            )
            stand_in.step(now, desired)
            ready += role_ready
        self._samples.append(
            WorkerSample(
                now,
                sum(stand_in.wanted for _, stand_in in self._numbers()),
                ready,
                sum(stand_in.occupying for _, stand_in in self._numbers()),
            )
        )

    def _lend(self, now: float, role: ElasticRole, stand_in: Operator) -> int:
        """Bring workers of batch to the number that they have now, and return how many are ready."""
        numbers = self._range(role)
        desired = numbers[0] if numbers else stand_in.wanted
        ready, before = self._ready_of(role, stand_in), stand_in.wanted
        self._decisions.append(
            ScalingDecision(now, role.name, before, ready, {}, desired, "the capacity shift")
        )
        stand_in.step(now, desired)
        return ready

    def _range(self, role: ElasticRole) -> tuple[int, int] | None:
        if self._shift is None:
            return None
        return self._shift.range_of(role.deployment.plan.release, role.workers.role)

    def _within_range(self, role: ElasticRole, desired: int, reason: str) -> tuple[int, str]:
        """Return the number that is wanted with the present range, and why."""
        floor, ceiling = self._floor(role) if self._floor else 0, desired
        if numbers := self._range(role):
            floor, ceiling = numbers
        if desired > ceiling:
            return ceiling, "the ceiling of the capacity shift"
        return (desired, reason) if desired >= floor else (floor, "the floor of the capacity shift")

    def _ready_of(self, role: ElasticRole, stand_in: Operator) -> int:
        """Return how many workers every frontend lists. One that is too busy to answer changes nothing."""
        listed = [each for each in self._serving.registered(role.deployment) if each is not None]
        others = sum(each.replicas for each in role.deployment.workers if each is not role.workers)
        if listed:
            self._ready[role.name] = max(0, min(listed) - others)
        return min(self._ready.get(role.name, 0), stand_in.serving)

    def _readings(self, rules: ScaledObject) -> Mapping[str, float | None]:
        asked = [each for each in rules.triggers if isinstance(each, MetricTrigger)]
        return {each.name: self._prometheus.number(each.query) for each in asked}
