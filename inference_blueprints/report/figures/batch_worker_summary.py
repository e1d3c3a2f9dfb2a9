"""Figures of batch workers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchWorkersSummary:
    """The workers of all models that have queues.

    Parameters
    ----------
    place
        Where they run: ``eks`` or ``ecs``.
    models
        How many models have workers.
    workers_min, workers_max
        Numbers over all models.
    usd_per_hour_min, usd_per_hour_max
        On-demand prices; None if they run on nodes that exist anyway.
    """

    place: str
    models: int
    workers_min: int
    workers_max: int
    vcpu: int
    memory_gib: int
    usd_per_hour_min: float | None
    usd_per_hour_max: float | None
