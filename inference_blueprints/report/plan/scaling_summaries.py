"""Summarises the elastic workers of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inference_blueprints.report.figures import FloorSummary, PoolSummary, ScalingSummary, TriggerSummary
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import Process

_PRICE_DECIMALS = 5


def summarise_scaling(
    roles: Iterable[tuple[ResolvedWorkers, Process]], pools: Iterable[PoolSummary]
) -> Iterator[ScalingSummary]:
    """Yield the elastic workers of each role, in the order of the blueprint.

    Parameters
    ----------
    roles
        Workers of all roles with their process.
    pools
        The pools, with the price of the nodes that hold all workers.
    """
    by_name = {pool.name: pool for pool in pools}
    for resolved, process in roles:
        if process.scaling is None:
            continue
        pool = by_name[resolved.pool.name]
        hourly = pool.usd_per_hour_used
        each = None if hourly is None else hourly / pool.accelerators_used * resolved.workers.accelerators
        yield ScalingSummary(
            model=resolved.model.name,
            deployment=resolved.deployment.name,
            name=process.name,
            workers_least=process.scaling.least,
            workers_most=process.scaling.most,
            usd_per_hour_least=_times(each, process.scaling.least),
            usd_per_hour_most=_times(each, process.scaling.most),
            triggers=tuple(
                TriggerSummary(
                    name=trigger.name,
                    target=trigger.target,
                    per_worker=trigger.metric_type == "AverageValue",
                    why=trigger.why,
                    query=trigger.query,
                )
                for trigger in process.scaling.triggers
            ),
            floors=tuple(
                FloorSummary(start=each.start, end=each.end, time_zone=each.time_zone, workers=each.replicas)
                for each in process.scaling.floors
            ),
            down_after_seconds=process.scaling.down_stabilization_seconds,
        )


def _times(usd_per_hour: float | None, workers: int) -> float | None:
    return None if usd_per_hour is None else round(usd_per_hour * workers, _PRICE_DECIMALS)
