"""A day of 100,000 simulated GPUs with faults at published rates, and GPU health that replaces their nodes.

Hardware faults come at the rates of Llama 3's training. GPUs that become slow, slow racks, rollouts, load
spikes, and metrics that are lost, late or doubled come at rates that are assumed
(`catalog/data/fleet_faults.json` has each with its source). The decisions are those of the Lambda functions.
A false drain is a cordoned node on which nothing was broken or slow. Times to the verdict include the delay
of metrics; failures that last less than half an hour, and workers with fewer than three peers, are left out
of them. The figure of NVSentinel is a comparison only: its nodes need no new machine and load no model.
"""

from __future__ import annotations

import numpy

from benchmarks.harness.figure import Figure
from inference_blueprints.catalog.fleet_faults import fleet_faults
from inference_blueprints.catalog.gpu_faults import gpu_faults_file
from inference_blueprints.fleet.fleet_events import GREY_SIZES, GreyFailure, drawn_events
from inference_blueprints.fleet.fleet_layout import FleetLayout, drawn_layout
from inference_blueprints.fleet.health_simulation import FleetRun, FoundFault, HealthSimulation
from inference_blueprints.gpu_health.fault_rules import FaultRules
from inference_blueprints.gpu_health.health_settings import HealthSettings
from inference_blueprints.measurement.statistics.percentiles import percentile

_GPUS = 100_000
_MINUTES = 1440
_SEED = 20261123
_LARGE = 0.3
_LASTING_SECONDS = 1800


def measure() -> list[Figure]:
    """Take the measurement."""
    random = numpy.random.default_rng(_SEED)
    layout, figures = drawn_layout(_GPUS, random), fleet_faults()
    events = drawn_events(layout, _MINUTES / 1440, figures, random)
    pools = {str(pool): "gpuHealth" for pool in set(layout.pool.tolist())}
    result = HealthSimulation(
        layout,
        events,
        settings=HealthSettings(action="replace", repaired_by=pools),  # type: ignore[arg-type]
        rules=FaultRules.parsed(gpu_faults_file().read_text(encoding="utf-8")),
        figures=figures,
        seed=_SEED + 1,
    ).run(_MINUTES)
    return [
        _figure("false drains in a day", len(result.false_drains), "nodes", goal=1),
        _figure("drains in a day", result.drains, "nodes"),
        _figure("decision about a signal, processor time p99", _p(result.event_seconds, 99), "s", goal=1),
        _figure("comparison of a minute, processor time p99", _p(result.minute_seconds, 99), "s"),
        *_slowdowns(result, layout),
        *_hardware(result, figures.published["nvsentinel_back_in_service_seconds"]),
    ]


def _slowdowns(result: FleetRun, layout: FleetLayout) -> list[Figure]:
    sizes = numpy.bincount(layout.release)
    lasting = [
        (found, found.fault)
        for found in result.faults
        if isinstance(found.fault, GreyFailure)
        and min(found.fault.until, _MINUTES * 60) - found.fault.at >= _LASTING_SECONDS
        and sizes[layout.release[found.fault.worker]] >= HealthSettings().detection.least_group
    ]
    large = [found for found, fault in lasting if fault.slower >= _LARGE]
    figures = [_figure("slower by 30 % or more, found after, p90", _p(_after(large), 90), "s", goal=240)]
    for size in GREY_SIZES:
        same = [found for found, fault in lasting if fault.slower == size]
        if same:
            share = 100 * sum(found.found_at is not None for found in same) / len(same)
            figures.append(_figure(f"slower by {size:.0%}, found".replace("%", " %"), share, "%"))
    return figures


def _hardware(result: FleetRun, published: float) -> list[Figure]:
    serving = [
        found.serving_at - found.fault.at
        for found in result.faults
        if found.serving_at is not None and not isinstance(found.fault, GreyFailure)
    ]
    return [
        Figure(
            "gpu_health fault to serving again, p50, beside NVSentinel",
            _p(serving, 50),
            "s",
            baseline=published,
            simulated=True,
        )
    ]


def _after(faults: list[FoundFault]) -> list[float]:
    """Return the seconds from each onset to its verdict. What was not found took for ever."""
    return [float("inf") if found.found_at is None else found.found_at - found.fault.at for found in faults]


def _p(values: list[float], share: float) -> float:
    return percentile(values, share) or 0.0


def _figure(name: str, value: float, unit: str, goal: float | None = None) -> Figure:
    return Figure(f"gpu_health {name}", value, unit, goal=goal, simulated=True)
