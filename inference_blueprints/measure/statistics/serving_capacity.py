"""The accelerators of a model and its share of the cost of the plan's nodes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.pools import POOLS, PRICES
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.pricing.deployment_share import share_of


@dataclass(frozen=True, slots=True)
class ServingCapacity:
    """The accelerators of some models, and their cost."""

    accelerators: float
    """Number of accelerators of their workers; a mean if the workers followed the load."""
    usd_per_hour: float | None
    """Their share of the price of the used nodes. None if the price of a pool is unknown."""
    price_note: str
    """Kind of the price, with its date, source and region."""
    at_most: int | None = None
    """Largest number of accelerators of elastic workers. None if their number is fixed."""

    def without(self, unused: float) -> ServingCapacity:
        """Return what elastic workers held.

        unused: Accelerators of the largest number of workers that no worker held, on average.
        """
        share = 1 - unused / self.accelerators
        return replace(
            self,
            accelerators=self.accelerators - unused,
            usd_per_hour=None if self.usd_per_hour is None else self.usd_per_hour * share,
            at_most=round(self.accelerators),
        )


def capacity_of(models: Collection[str], summary: PlanSummary) -> ServingCapacity:
    """Return what serves some of a plan's models.

    summary: The plan in figures.
    Returns: Over all pools.
    """
    deployments = {
        (process.model, process.deployment) for process in summary[PROCESSES] if process.model in models
    }
    accelerators, usd_per_hour = share_of(deployments, summary[POOLS], summary[PROCESSES])
    return ServingCapacity(accelerators, usd_per_hour, summary[PRICES].note)
