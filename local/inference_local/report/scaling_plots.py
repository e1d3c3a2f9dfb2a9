"""Plots of workers that followed the load."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from inference_blueprints.measure.charts import (
    Axis,
    Curve,
    Plot,
    Point,
)
from inference_local.scaling.scaling_outcome import ScalingOutcome

RUN_TIME = "seconds since the start"


def scaling_plots(outcome: ScalingOutcome, *, simulated: bool) -> list[Plot]:
    """Return a plot of the workers, and one for each trigger of each role.

    outcome: An outcome with samples.
    simulated: Whether the engines were simulated.
    """
    seconds, mark = outcome.samples[-1].seconds, " (simulated)" if simulated else ""
    readings = sorted({(each.role, name) for each in outcome.decisions for name in each.readings})
    workers = Plot(
        "scaling-workers",
        f"Workers{mark}",
        "Wanted workers (red), ready workers (blue), and workers that hold accelerators because they start, "
        "serve or end (green).",
        Axis(RUN_TIME, seconds),
        Axis("workers", max(each.occupying for each in outcome.samples)),
        (
            Curve(steps([(each.seconds, float(each.occupying)) for each in outcome.samples]), "second"),
            Curve(steps([(each.seconds, float(each.wanted)) for each in outcome.samples]), "bad"),
            Curve(steps([(each.seconds, float(each.ready)) for each in outcome.samples]), "first"),
        ),
    )
    return [workers, *(_reading(outcome, seconds, role, name, mark) for role, name in readings)]


def _reading(outcome: ScalingOutcome, seconds: float, role: str, name: str, mark: str) -> Plot:
    readings = [(each.seconds, each.readings.get(name)) for each in outcome.decisions if each.role == role]
    return Plot(
        f"scaling-{role}-{name}",
        f"What decisions saw: {name} of {role}{mark}",
        "The answer of Prometheus to the query of the trigger, for all workers together. Without an "
        "answer, the line has a gap.",
        Axis(RUN_TIME, seconds),
        Axis(name, max((value for _, value in readings if value is not None), default=1.0)),
        tuple(Curve(points, "first") for points in _answered(readings)),
    )


def _answered(readings: Sequence[tuple[float, float | None]]) -> list[list[Point]]:
    """Return each stretch of readings with an answer."""
    stretches: list[list[Point]] = [[]]
    for seconds, value in readings:
        if value is None:
            stretches.append([])
        else:
            stretches[-1].append((seconds, value))
    return [points for points in stretches if points]


def steps(points: list[Point]) -> list[Point]:
    """Return points that keep each value until the next."""
    stepped = points[:1]
    for (_, before), (seconds, value) in pairwise(points):
        stepped += [(seconds, before), (seconds, value)]
    return stepped
