"""Plots of workers that followed the load."""

from __future__ import annotations

from itertools import pairwise

from inference_blueprints.local.scaling.scaling_outcome import ScalingOutcome
from inference_blueprints.measurement.charts.svg_chart import Axis, Curve, Plot, Point

_TIME = "seconds since the start"


def scaling_plots(outcome: ScalingOutcome) -> list[Plot]:
    """Return a plot of the workers, and one for each trigger of each role.

    Parameters
    ----------
    outcome
        An outcome with samples.
    """
    seconds = outcome.samples[-1].seconds
    readings = sorted({(each.role, name) for each in outcome.decisions for name in each.readings})
    workers = Plot(
        "scaling-workers",
        "Workers (simulated)",
        "Wanted workers (red), ready workers (first colour), and workers that hold accelerators because they "
        "start, serve or end (second colour).",
        Axis(_TIME, seconds),
        Axis("workers", max(each.occupying for each in outcome.samples)),
        (
            Curve(_steps([(each.seconds, float(each.occupying)) for each in outcome.samples]), "second"),
            Curve(_steps([(each.seconds, float(each.wanted)) for each in outcome.samples]), "bad"),
            Curve(_steps([(each.seconds, float(each.ready)) for each in outcome.samples]), "first"),
        ),
    )
    return [workers, *(_reading(outcome, seconds, role, name) for role, name in readings)]


def _reading(outcome: ScalingOutcome, seconds: float, role: str, name: str) -> Plot:
    points = [
        (each.seconds, value)
        for each in outcome.decisions
        if each.role == role and (value := each.readings.get(name)) is not None
    ]
    return Plot(
        f"scaling-{role}-{name}",
        f"What decisions saw: {name} of {role} (simulated)",
        "The answer of Prometheus to the query of the trigger, for all workers together.",
        Axis(_TIME, seconds),
        Axis(name, max((value for _, value in points), default=1.0)),
        (Curve(points, "first"),),
    )


def _steps(points: list[Point]) -> list[Point]:
    """Return points that keep each value until the next."""
    stepped = points[:1]
    for (_, before), (seconds, value) in pairwise(points):
        stepped += [(seconds, before), (seconds, value)]
    return stepped
