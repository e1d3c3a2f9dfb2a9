"""The plan in about ten lines."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.cost import month_in_short
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.sections.processes import PROCESSES


def headline(summary: PlanSummary) -> str:
    """Return the plan in one line: the platform, its devices and nodes, and the cost of a month.

    summary: The figures of the plan.
    Returns: Such as ``quickstart in us-west-2: 2 x l40s on g6e.2xlarge, 4,035 USD a month``.
    """
    pools = " + ".join(_devices(summary)) or "no nodes"
    return f"{summary.name} in {summary.region}: {pools}, {month_in_short(summary)}"


def _devices(summary: PlanSummary) -> Iterator[str]:
    """Yield the devices that workers hold in each pool with nodes; a range if workers are elastic."""
    for pool in summary[POOLS]:
        if pool.reckoned_instance_type is None:
            continue
        held = [each for each in summary[PROCESSES] if each.pool == pool.name]
        least = sum(each.replicas_least * each.accelerators for each in held)
        most = pool.accelerators_used
        count = str(most) if least == most else f"{least} to {most}"
        purchase = "" if pool.purchase == "onDemand" else f" ({pool.purchase})"
        yield f"{count} x {pool.accelerator or 'no device'} on {pool.reckoned_instance_type}{purchase}"
