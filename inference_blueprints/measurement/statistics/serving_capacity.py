"""What the plan's nodes cost and how many accelerators a model has of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from inference_blueprints.figures import PlanSummary
from inference_blueprints.pricing.deployment_share import share_of


@dataclass(frozen=True, slots=True)
class ServingCapacity:
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
