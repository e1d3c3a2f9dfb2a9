"""Faults of measurements: late, missing, wrong by a factor, unsteady."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from inference_local.simulators.workers.owners import RoleState, Signal


@dataclass(frozen=True, slots=True)
class During:
    """A time of the simulation, in seconds; it includes the begin."""

    begin: float
    end: float

    def __contains__(self, seconds: float) -> bool:
        """Return whether a time is in it."""
        return self.begin <= seconds < self.end


def late(signal: Signal, delay_seconds: float) -> Signal:
    """Return a signal that arrives late. Nothing is read until the first value arrives."""
    values: deque[tuple[float, float | None]] = deque()

    def read(state: RoleState) -> float | None:
        values.append((state.now_seconds, signal(state)))
        while len(values) > 1 and values[1][0] <= state.now_seconds - delay_seconds:
            values.popleft()
        return values[0][1] if values[0][0] <= state.now_seconds - delay_seconds else None

    return read


def unreadable(signal: Signal, during: During) -> Signal:
    """Return a signal whose source does not answer for a time, as when Prometheus is gone."""
    return lambda state: None if state.now_seconds in during else signal(state)


def without_series(signal: Signal, during: During) -> Signal:
    """Return a signal without a value for a time, as when nothing scrapes the workers."""
    return lambda state: math.nan if state.now_seconds in during else signal(state)


def wrong_by(signal: Signal, factor: float, during: During) -> Signal:
    """Return a signal that is a multiple of the true value for a time."""

    def read(state: RoleState) -> float | None:
        value = signal(state)
        return value * factor if value is not None and state.now_seconds in during else value

    return read
