"""Share of some deployments in the price of the nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from inference_blueprints.report.figures import PoolSummary, ProcessSummary


def share_of(
    deployments: Collection[tuple[str, str]],
    pools: Sequence[PoolSummary],
    processes: Sequence[ProcessSummary],
) -> tuple[int, float | None]:
    """Return devices and US dollars per hour of some deployments.

    The price of a pool's used nodes is split among its deployments in proportion to their devices.

    deployments: Model and deployment names.
    Returns: Devices of their workers, and their share of the used nodes' price; None if a pool's price is
        unknown.
    """
    held = {
        pool.name: sum(
            process.replicas * process.accelerators
            for process in processes
            if process.pool == pool.name and (process.model, process.deployment) in deployments
        )
        for pool in pools
    }
    shares = [
        None
        if pool.usd_per_hour_used is None
        else pool.usd_per_hour_used * held[pool.name] / pool.accelerators_used
        for pool in pools
        if held[pool.name]
    ]
    known = [share for share in shares if share is not None]
    return sum(held.values()), sum(known) if len(known) == len(shares) else None
