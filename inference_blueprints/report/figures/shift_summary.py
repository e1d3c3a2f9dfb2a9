"""What the capacity shift moves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShiftSummary:
    """The capacity shift of one kind of elastic workers.

    Parameters
    ----------
    workers
        Name of their ScaledObject.
    pool
        Their pool.
    floor_least, floor_most
        Range of their floor.
    requests_per_worker
        Requests in flight that one worker carries within the objectives.
    batch_places
        Most places of batch in their model. Zero if batch does not use it.
    carried_out
        Whether decisions are carried out, or only recorded.
    safety_percent, reclaim_seconds
        Margin above the forecast, and how far it looks ahead.
    """

    workers: str
    pool: str
    floor_least: int
    floor_most: int
    requests_per_worker: float
    batch_places: int
    carried_out: bool
    safety_percent: int
    reclaim_seconds: int
