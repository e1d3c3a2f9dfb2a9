"""Workers of batch in figures."""

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
        Of all models together.
    usd_per_hour_min, usd_per_hour_max
        On demand; None where they run on nodes that are there anyway.
    """

    place: str
    models: int
    workers_min: int
    workers_max: int
    vcpu: int
    memory_gib: int
    usd_per_hour_min: float | None
    usd_per_hour_max: float | None
