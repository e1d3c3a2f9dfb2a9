"""Plots of a run: workers that followed the load, and what the capacity shift and GPU health did."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from inference_blueprints.measure.charts import (
    Axis,
    Curve,
    Limit,
    Plot,
    Point,
)
from inference_local.controllers.controller_outcomes import CapacityShiftOutcome, GpuHealthOutcome
from inference_local.report.report_text import marks
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


def shift_plots(outcome: CapacityShiftOutcome) -> list[Plot]:
    """Return a plot of the workers by owner, and one of the load.

    outcome: An outcome with decisions.
    """
    if not outcome.decisions or not outcome.workers:
        return []
    seconds = outcome.workers[-1][0]
    shared = _shared(outcome)
    quotas = [(each.seconds, float(each.batch_accelerators)) for each in outcome.decisions]
    floors = [(each.seconds, float(each.floor)) for each in outcome.decisions]
    highest = max(*(value for _, value in quotas), *(float(ready) for _, ready in outcome.workers))
    owners = Plot(
        "shift-owners",
        "Workers by owner (simulated)",
        "Ready workers without batch's share of them (blue), batch's share of them (green), accelerators "
        "that batch's own jobs may have (grey), and the floor of workers (red).",
        Axis(RUN_TIME, seconds),
        Axis("workers", highest),
        (
            Curve(steps(quotas), "muted"),
            Curve(steps([(at, batch) for at, _, batch in shared]), "second"),
            Curve(steps(floors), "bad"),
            Curve(steps([(at, interactive) for at, interactive, _ in shared]), "first"),
        ),
    )
    load = Plot(
        "shift-load",
        "Load (simulated)",
        "Requests in flight: interactive (blue) and batch (green).",
        Axis(RUN_TIME, seconds),
        Axis(
            "requests in flight",
            max((max(each.interactive, each.batch) for each in outcome.load), default=1.0),
        ),
        (
            Curve([(each.seconds, each.batch) for each in outcome.load], "second"),
            Curve([(each.seconds, each.interactive) for each in outcome.load], "first"),
        ),
    )
    return [owners, load]


def health_plots(outcome: GpuHealthOutcome) -> list[Plot]:
    """Return a plot of the slow worker beside its peers.

    outcome: An outcome. Without latencies, there is no plot.
    """
    points = [each for series in outcome.latencies.values() for each in series]
    if not points:
        return []
    begin, end = min(at for at, _ in points), max(at for at, _ in points)
    peers = [
        Curve(_since(begin, series), "first")
        for pod, series in sorted(outcome.latencies.items())
        if pod != outcome.slow_pod
    ]
    slow = Curve(_since(begin, outcome.latencies.get(outcome.slow_pod, ())), "bad")
    return [
        Plot(
            "health-latency",
            "The slow worker beside its peers (simulated)",
            "Time per output token of each worker: the slow one (red) and its peers (blue), and when it was "
            f"slowed, found, drained and replaced. Second 0 is second {begin:.0f} of the run.",
            Axis("seconds", end - begin),
            Axis("ms per output token", max(value for _, value in points)),
            (*peers, slow, *(Limit(at - begin, words) for at, words in marks(outcome) if begin <= at <= end)),
        )
    ]


def _shared(outcome: CapacityShiftOutcome) -> list[tuple[float, float, float]]:
    """Return seconds, and the ready workers that are interactive's and batch's."""
    times = [each.seconds for each in outcome.decisions]
    found = []
    for at, ready in outcome.workers:
        place = bisect_right(times, at) - 1
        lent = outcome.decisions[place].lent * outcome.most_workers if place >= 0 else 0.0
        found.append((at, ready - min(lent, ready), min(lent, float(ready))))
    return found


def _since(begin: float, series: tuple[tuple[float, float], ...]) -> list[Point]:
    return [(at - begin, value) for at, value in series]
