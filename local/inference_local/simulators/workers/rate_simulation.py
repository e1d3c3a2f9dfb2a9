"""Simulates weeks of an elastic role from its request rates, in steps of seconds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from inference_blueprints.serving.autoscaling.request_rates import RequestRates
from inference_contracts.units import SECONDS_PER_HOUR
from inference_local.simulators.workers.fleet import Fleet, StartFault, WorkerModel
from inference_local.simulators.workers.owners import DECISION_SECONDS, Owner, RoleState

_STEPS_PER_DECISION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What came of a simulation."""

    requests: float
    """Number of requests."""
    within_objective: float
    """Share of them with a first token within the objective."""
    accelerator_hours: float
    """Accelerators times hours, from the decision for a worker until its last request ended."""
    max_present: int
    """Largest number of workers in the pool at a time."""
    missing_worker_hours: float
    """Workers that the pool could not hold, times hours."""
    decisions: int
    """Number of changes."""


def arrivals_per_step(rates: RequestRates, seed: int) -> list[float]:
    """Return the number of requests of each step, by chance around the rates.

    Their variance is that of a renewal process over a long time: the square of the coefficient of variation
    times the mean.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret is made
    step = DECISION_SECONDS / _STEPS_PER_DECISION
    number = round((rates.end_seconds - rates.start_seconds) / step)
    found = []
    for index in range(number):
        seconds = rates.start_seconds + index * step
        mean = rates.rate_at(seconds) * step
        variation = rates.window_at(seconds).variation
        found.append(max(0.0, chance.gauss(mean, variation * math.sqrt(mean))))
    return found


def simulate_rates(
    rates: RequestRates,
    arrivals: list[float],
    worker: WorkerModel,
    owner: Owner,
    *,
    maximum: int,
    fault: Callable[[float], StartFault | None] = lambda _: None,
) -> Simulated:
    """Simulate an elastic role.

    Requests take free slots of ready workers, and wait for one otherwise. Waiting requests and the rate at
    which slots become free give the wait of what arrives. Requests leave at the rate of those that run
    divided by the time of one.

    rates: The rates: time of begin and end, and the number of workers at the begin.
    arrivals: Of `arrivals_per_step`.
    worker: What a worker carries.
    owner: Who decides. It begins with as many workers as the first window needs.
    maximum: Largest number of workers that the pool has room for.
    fault: What happens at a time to workers that start.
    """
    step = DECISION_SECONDS / _STEPS_PER_DECISION
    first = math.ceil(rates.windows[0].rate / worker.requests_per_second)
    fleet = Fleet(worker, maximum, min(maximum, max(1, first)))
    running = waiting = 0.0
    requests = kept = missing = 0.0
    present = decisions = 0
    last_rate = rates.windows[0].rate
    for index, arriving in enumerate(arrivals):
        now = rates.start_seconds + index * step
        fleet.advance(now)
        if index % _STEPS_PER_DECISION == 0:
            state = RoleState(
                now_seconds=now,
                wanted=fleet.wanted,
                ready=fleet.ready,
                running=running,
                waiting=waiting,
                prefilling=last_rate * worker.prefill_seconds,
            )
            wanted = owner.wanted(state)
            before = fleet.ready
            gone = fleet.want(wanted, now, fault(now))
            decisions += wanted != state.wanted
            if gone:
                moved = running * gone / before
                running -= moved
            missing += max(0, wanted - fleet.wanted) * DECISION_SECONDS
        slots = fleet.ready * worker.slots
        free_per_second = slots / worker.service_seconds
        wait = waiting / free_per_second if slots else math.inf
        requests += arriving
        kept += arriving if wait <= worker.longest_wait_seconds else 0.0
        ending = running * step / worker.service_seconds
        running -= ending
        waiting += arriving
        starting = min(waiting, max(0.0, slots - running))
        running, waiting = running + starting, waiting - starting
        last_rate = starting / step
        present = max(present, fleet.present)
    fleet.advance(rates.end_seconds)
    return Simulated(
        requests=requests,
        within_objective=kept / requests if requests else 1.0,
        accelerator_hours=fleet.billed_seconds * worker.accelerators / SECONDS_PER_HOUR,
        max_present=present,
        missing_worker_hours=missing / SECONDS_PER_HOUR,
        decisions=decisions,
    )
