"""The accelerators of a model and its share of the cost of the plan's nodes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from inference_blueprints.figures import PlanSummary
from inference_blueprints.pricing.deployment_share import share_of


@dataclass(frozen=True, slots=True)
class ServingCapacity:
    """The accelerators of some models, and their cost.

    Parameters
    ----------
    accelerators
        Number of accelerators of their workers.
    usd_per_hour
        Their share of the price of the used nodes. None if the price of a pool is unknown.
    price_note
        Kind of the price, with its date, source and region.
    """

    accelerators: int
    usd_per_hour: float | None
    price_note: str


def capacity_of(models: Collection[str], summary: PlanSummary) -> ServingCapacity:
    """Return what serves some of a plan's models.

    Parameters
    ----------
    models
        Names of the models.
    summary
        The plan in figures.

    Returns
    -------
    ServingCapacity
        Over all pools.
    """
    deployments = {
        (process.model, process.deployment) for process in summary.processes if process.model in models
    }
    accelerators, usd_per_hour = share_of(deployments, summary.pools, summary.processes)
    return ServingCapacity(accelerators, usd_per_hour, summary.prices.note)
