"""Simulates hours of an elastic role request by request."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from inference_blueprints.serving.autoscaling.request_rates import RequestRates
from inference_contracts.units import SECONDS_PER_HOUR
from inference_local.simulators.workers.fleet import StartFault, WorkerModel
from inference_local.simulators.workers.owners import DECISION_SECONDS, Owner, RoleState

#: Time after the last arrival within which answers end; requests that still wait then are not completed.
_LONGEST_TAIL_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRequests:
    """What came of a simulation."""

    requests: int
    completed: int
    within_objective: int
    """`requests`, `completed`, `within_objective`: Number of requests that arrived, that were answered, and
    whose first token came within the objective."""
    max_present: int
    """Largest number of workers in the pool at a time, those that start or drain included."""
    ended_with_requests: int
    """Workers that ended while they had requests."""
    accelerator_hours: float
    """Accelerators times hours, from the decision for a worker until its last request ended."""


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker with its requests."""

    since: float
    ready_at: float
    running: int = 0
    leaving: bool = False


@dataclass(slots=True)
class _Role:
    """The workers and requests of a role at a time."""

    model: WorkerModel
    workers: list[_Worker] = field(default_factory=list)
    waiting: deque[float] = field(default_factory=deque)
    ends: list[tuple[float, int, _Worker]] = field(default_factory=list)
    """Time at which a request ends, and its worker."""
    started: int = 0
    completed: int = 0
    within_objective: int = 0
    max_present: int = 0
    ended_with_requests: int = 0
    worker_seconds: float = 0.0

    def staying(self) -> list[_Worker]:
        """Return the workers that are ready or starting."""
        return [each for each in self.workers if not each.leaving]

    def ready(self, now: float) -> list[_Worker]:
        """Return the workers that accept requests."""
        return [each for each in self.workers if not each.leaving and each.ready_at <= now]

    def begin_waiting(self, now: float) -> None:
        """Give waiting requests to the ready workers with most free slots."""
        ready = self.ready(now)
        while self.waiting and ready:
            worker = min(ready, key=lambda each: each.running)
            if worker.running + 1 > self.model.slots:
                return
            arrived = self.waiting.popleft()
            worker.running += 1
            self.started += 1
            first_token = now + self.model.prefill_seconds - arrived
            self.within_objective += first_token <= self.model.objective_seconds
            heappush(self.ends, (now + self.model.service_seconds, self.started, worker))

    def end_requests(self, now: float) -> None:
        """End the requests whose time is over; their slots go to waiting ones at that time."""
        while self.ends and self.ends[0][0] <= now:
            time, _, worker = heappop(self.ends)
            worker.running -= 1
            self.completed += 1
            if worker.leaving and not worker.running:
                self._end(worker, time)
            self.begin_waiting(time)

    def want(self, number: int, now: float, maximum: int, fault: StartFault | None) -> None:
        """Start or drain workers to a number: those that still start go first, then the least busy."""
        staying = self.staying()
        for _ in range(number - len(staying)):
            if len(self.workers) >= maximum or fault == "no capacity":
                break
            ready_at = math.inf if fault == "never ready" else now + self.model.cold_start_seconds
            self.workers.append(_Worker(now, ready_at))
        by_need = sorted(staying, key=lambda each: (each.ready_at <= now, each.running))
        for worker in by_need[: max(0, len(staying) - number)]:
            worker.leaving = True
            if not worker.running:
                self._end(worker, now)
        self.max_present = max(self.max_present, len(self.workers))

    def _end(self, worker: _Worker, now: float) -> None:
        self.ended_with_requests += worker.running > 0
        self.worker_seconds += now - worker.since
        self.workers.remove(worker)


def arrival_times(rates: RequestRates, seed: int) -> Iterator[float]:
    """Yield the times of requests: gamma-distributed times between them, with each window's variation."""
    chance = random.Random(seed)  # noqa: S311 - no secret is made
    now = rates.start_seconds
    while now < rates.end_seconds:
        rate, variation = rates.rate_at(now), rates.window_at(now).variation
        if rate <= 0:
            now += 1.0
            continue
        if variation:
            shape = 1.0 / variation**2
            now += chance.gammavariate(shape, 1.0 / (shape * rate))
        else:
            now += 1.0 / rate
        if now < rates.end_seconds:
            yield now


def simulate_requests(
    rates: RequestRates,
    worker: WorkerModel,
    owner: Owner,
    *,
    maximum: int,
    seed: int,
    fault: Callable[[float], StartFault | None] = lambda _: None,
) -> SimulatedRequests:
    """Simulate an elastic role, and afterwards wait until every request has its answer.

    rates: The rates. The role begins with as many ready workers as the first window needs.
    worker: What a worker carries.
    owner: Who decides.
    maximum: Largest number of workers that the pool has room for, those that drain included.
    seed: Of the arrivals.
    fault: What happens at a time to workers that start.
    """
    begin = rates.start_seconds
    first = max(1, math.ceil(rates.windows[0].rate / worker.requests_per_second))
    role = _Role(worker, [_Worker(begin, begin) for _ in range(min(maximum, first))])
    arrivals = arrival_times(rates, seed)
    arriving = next(arrivals, math.inf)
    requests, now = 0, begin
    latest = rates.end_seconds + _LONGEST_TAIL_SECONDS
    while now < rates.end_seconds or ((role.ends or role.waiting) and now < latest):
        while arriving < now + DECISION_SECONDS:
            role.end_requests(arriving)
            role.waiting.append(arriving)
            role.begin_waiting(arriving)
            requests += 1
            arriving = next(arrivals, math.inf)
        now += DECISION_SECONDS
        role.end_requests(now)
        role.begin_waiting(now)
        staying, ready = role.staying(), role.ready(now)
        running = sum(each.running for each in ready)
        state = RoleState(
            now_seconds=now,
            wanted=len(staying),
            ready=len(ready),
            running=running,
            waiting=len(role.waiting),
            prefilling=running * worker.prefill_seconds / worker.service_seconds,
        )
        role.want(owner.wanted(state), now, maximum, fault(now))
    left = sum(now - each.since for each in role.workers)
    return SimulatedRequests(
        requests=requests,
        completed=role.completed,
        within_objective=role.within_objective,
        max_present=role.max_present,
        ended_with_requests=role.ended_with_requests,
        accelerator_hours=(role.worker_seconds + left) * worker.accelerators / SECONDS_PER_HOUR,
    )
