"""A month of 10,000 simulated GPUs with faults, as in the benchmark of a day of 100,000.

A false drain is a cordoned node on which nothing was broken or slow. The day and the month together have to
take less than half an hour on two cores.
"""

from __future__ import annotations

from benchmarks.harness.figure import Figure
from benchmarks.harness.fleet_runs import usual_run

_GPUS = 10_000
_MINUTES = 30 * 1440
_SEED = 20261208
_HALF_AN_HOUR = 1800


def measure() -> list[Figure]:
    """Take the measurement."""
    run = usual_run(_GPUS, _MINUTES, _SEED)
    return [
        Figure("gpu_health_month drains", run.result.drains, "nodes", simulated=True),
        Figure("gpu_health_month false drains", len(run.result.false_drains), "nodes", simulated=True),
        Figure(
            "gpu_health_month processor time of the simulation",
            run.seconds,
            "s",
            goal=_HALF_AN_HOUR,
            simulated=True,
        ),
    ]
