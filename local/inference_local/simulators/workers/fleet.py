"""The workers of a role over time: starting, ready, draining."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

# What one worker carries, as far as the simulator knows.


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerModel:
    """A worker that serves a number of requests at once, each for the same time."""

    slots: float
    """Requests at once within the objectives."""
    prefill_seconds: float
    """Time from the start of a request on a worker to its first token."""
    answer_seconds: float
    """Time from the first token to the last."""
    cold_start_seconds: float
    """Time from a decision until a further worker is ready, with its node."""
    objective_seconds: float
    """Longest time to first token."""
    accelerators: int = 1

    @property
    def service_seconds(self) -> float:
        """Time of a request on a worker."""
        return self.prefill_seconds + self.answer_seconds

    @property
    def requests_per_second(self) -> float:
        """Rate that a worker with all slots in use serves."""
        return self.slots / self.service_seconds

    @property
    def longest_wait_seconds(self) -> float:
        """Time that a request may wait for a slot within the objective."""
        return self.objective_seconds - self.prefill_seconds


#: What may go wrong with a worker that is asked for.
StartFault = Literal["never ready", "no capacity"]


@dataclass(slots=True)
class Fleet:
    """Workers of a role. Times are in seconds and do not go back."""

    worker: WorkerModel
    """What one of them carries."""
    maximum: int
    """Largest number of workers, those that drain included: what the pool has room for."""
    ready: int
    """Number of ready workers at the begin."""
    starting: deque[float] = field(default_factory=deque)
    """Times at which workers become ready, with infinity for those that never do."""
    draining: deque[float] = field(default_factory=deque)
    """Times at which the last requests of leaving workers end."""
    billed_seconds: float = 0.0
    missing_seconds: float = 0.0
    """Time with fewer workers than wanted because the pool is full or has no capacity, times their number."""
    _now: float | None = None

    @property
    def wanted(self) -> int:
        """Workers that are ready or starting."""
        return self.ready + len(self.starting)

    @property
    def present(self) -> int:
        """Workers that hold a place in the pool."""
        return self.wanted + len(self.draining)

    def advance(self, now: float) -> None:
        """Let workers become ready and leave until a time, and count what they cost."""
        before = now if self._now is None else self._now
        self.billed_seconds += self.present * (now - before)
        self._now = now
        while self.starting and self.starting[0] <= now:
            self.starting.popleft()
            self.ready += 1
        while self.draining and self.draining[0] <= now:
            self.draining.popleft()

    def want(self, number: int, now: float, fault: StartFault | None = None) -> int:
        """Start or drain workers to a number, and return how many begin to drain.

        Workers that still start go first, the newest of them at once. A worker that leaves finishes its
        requests, so it stays for one request's time. A leaving worker keeps its place in the pool until then.

        number: Wanted workers.
        now: The time.
        fault: What happens to workers that start now.
        """
        for _ in range(number - self.wanted):
            if self.present >= self.maximum or fault == "no capacity":
                break
            ready_at = float("inf") if fault == "never ready" else now + self.worker.cold_start_seconds
            self.starting.append(ready_at)
        while self.wanted > number and self.starting:
            self.starting.pop()
        leaving = max(0, self.wanted - number)
        self.ready -= leaving
        self.draining.extend([now + self.worker.service_seconds] * leaving)
        return leaving
