"""What the plan's nodes cost and how many accelerators a model has of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from inference_blueprints.planning.types import PlanSummary


@dataclass(frozen=True, slots=True)
class Capacity:
    """What serves some models.

    Parameters
    ----------
    accelerators
        Devices that their workers hold.
    usd_per_hour
        Their share of the used nodes' price; None where a pool's price is unknown.
    price_note
        What the price is, with its date, source and region.
    """

    accelerators: int
    usd_per_hour: float | None
    price_note: str


def capacity_of(models: Collection[str], summary: PlanSummary) -> Capacity:
    """Return what serves some of a plan's models.

    A pool's used nodes are paid for by the models in it, each by its accelerators.

    Parameters
    ----------
    models
        Names of the models.
    summary
        The plan in figures.

    Returns
    -------
    Capacity
        Over all pools.
    """
    held = {
        pool.name: sum(
            process.replicas * process.accelerators
            for process in summary.processes
            if process.pool == pool.name and process.model in models
        )
        for pool in summary.pools
    }
    used = [pool for pool in summary.pools if held[pool.name]]
    shares = [
        None
        if pool.usd_per_hour_used is None
        else pool.usd_per_hour_used * held[pool.name] / pool.accelerators_used
        for pool in used
    ]
    known = [share for share in shares if share is not None]
    usd_per_hour = sum(known) if len(known) == len(shares) else None
    return Capacity(sum(held.values()), usd_per_hour, summary.prices.note)
