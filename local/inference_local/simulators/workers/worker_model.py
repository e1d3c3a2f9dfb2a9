"""What one worker carries, as far as the simulator knows."""

from __future__ import annotations

from dataclasses import dataclass


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
