"""A day of 100,000 simulated GPUs with faults at published rates, and GPU health that replaces their nodes.

Hardware faults come at the rates of Llama 3's training. GPUs that become slow, slow racks, rollouts, load
spikes, and metrics that are lost, late or doubled come at rates that are assumed
(`catalog/inference_catalog/data/fleet_faults.json` has each with its source). The decisions are those of the
Lambda functions.
A false drain is a cordoned node on which nothing was broken or slow. Times to the verdict include the delay
of metrics; failures that last less than half an hour, and workers with fewer than three peers, are left out
of them. In the scenarios nothing is broken, a tenth of the racks or releases is hit, or metrics are lost
(20 %), late (30 %) or doubled (10 %), for two hours of 10,000 GPUs: each drain is wrong. The detector was
chosen on other seeds. The goal is to serve again as soon as NVSentinel's published time; its nodes need no
new machine and load no model. 100,000 GPUs are 12,500 simulated nodes: nothing ran on as many machines.


Reboots: forty nodes have, one after the other, a fault that a reboot mends. AWS publishes no time of a reboot
for an instance with GPUs ("only a few minutes", Amazon EC2 User Guide, Reboot your instance), so the whole
time is unknown. Measured is all but the boot, a lower bound: the signal (60 s on average), the drain (60 s),
the start of the workers (150 s, all three assumed), and what the function adds, which looks each minute.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy

from benchmarks.harness.figure import Figure
from benchmarks.harness.fleet_runs import health_run, usual_run
from inference_blueprints.measure.statistics import percentile
from inference_catalog.gpu_faults import FleetFaults, fleet_faults
from inference_contracts.units import MINUTES_PER_DAY
from inference_decisions.repairs.health_settings import HealthSettings
from inference_local.simulators.fleet.fleet_events import (
    GREY_SIZES,
    FleetEvents,
    GreyFailure,
    HardwareFault,
    healthy_scenarios,
)
from inference_local.simulators.fleet.fleet_layout import FleetLayout, drawn_layout
from inference_local.simulators.fleet.health_simulation import FleetRun, FoundFault

_GPUS = 100_000
_SCENARIO = 120
_SEED = 20261207
_LARGE = 0.3
_LASTING_SECONDS = 1800
_HALF_AN_HOUR = 1800
#: GPUs, faults, the XID of each (the GPU has to be reset), the time of the first, and seconds between two,
#: so that the cap of an hour holds none back.
_REBOOTED_FLEET, _REBOOTED, _RESET, _FIRST_FAULT, _APART = 1000, 40, "46", 930.0, 1217.0


def measure() -> list[Figure]:
    """Take the measurement: the day, then the scenarios."""
    run = usual_run(_GPUS, MINUTES_PER_DAY, _SEED)
    day, figures = run.result, fleet_faults()
    lasting = _lasting(day, run.layout)
    large = [found for found, fault in lasting if fault.slower >= _LARGE]
    return [
        _figure("false drains in a day", len(day.false_drains), "nodes", goal=1),
        _figure("drains in a day", day.drains, "nodes"),
        _figure("decision about a signal, processor time p99", _p(day.event_seconds, 99), "s", goal=1),
        _figure("comparison of a minute, processor time p99", _p(day.minute_seconds, 99), "s"),
        _figure("processor time of the simulation", run.seconds, "s", goal=_HALF_AN_HOUR),
        _figure("slower by 30 % or more, found after, p90", _p(_after(large), 90), "s", goal=240),
        *_by_size(lasting),
        *_reboots(figures),
        *_hardware(day, figures.published["nvsentinel_back_in_service_seconds"]),
        *_scenarios(figures),
    ]


def _lasting(result: FleetRun, layout: FleetLayout) -> list[tuple[FoundFault, GreyFailure]]:
    sizes = numpy.bincount(layout.release)
    return [
        (found, found.fault)
        for found in result.faults
        if isinstance(found.fault, GreyFailure)
        and min(found.fault.until, MINUTES_PER_DAY * 60) - found.fault.at >= _LASTING_SECONDS
        and sizes[layout.release[found.fault.worker]] >= HealthSettings().detection.min_group_size
    ]


def _by_size(lasting: list[tuple[FoundFault, GreyFailure]]) -> Iterator[Figure]:
    for size in GREY_SIZES:
        same = [found for found, fault in lasting if fault.slower == size]
        if same:
            share = 100 * sum(found.found_at is not None for found in same) / len(same)
            name = f"slower by {size:.0%}".replace("%", " %")
            yield _figure(f"{name}, found", share, "%")


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
            goal=1,
            simulated=True,
        )
    ]


def _reboots(figures: FleetFaults) -> Iterator[Figure]:
    random = numpy.random.default_rng(_SEED + 4)
    layout = drawn_layout(_REBOOTED_FLEET, random)
    faults = [
        HardwareFault(int(node), _FIRST_FAULT + _APART * number, "xid", _RESET, broken=True)
        for number, node in enumerate(random.permutation(layout.nodes)[:_REBOOTED])
    ]
    minutes = int((_FIRST_FAULT + _APART * _REBOOTED) / 60) + 30
    events = FleetEvents(hardware=tuple(faults))
    run = health_run(layout, events, figures, minutes, _SEED + 5, reboots=1)
    serving = [found.serving_at - found.fault.at for found in run.faults if found.serving_at is not None]
    yield _figure(
        "reboot, all but the boot itself: fault to serving again, p50", _p(serving, 50), "s", goal=150
    )
    yield _figure("reboot, nodes that serve again", 100 * len(serving) / _REBOOTED, "%")
    yield _figure("reboot, false drains", len(run.false_drains), "nodes", goal=0)


def _scenarios(figures: FleetFaults) -> Iterator[Figure]:
    random = numpy.random.default_rng(_SEED + 2)
    layout = drawn_layout(10_000, random)
    for name, scenario in healthy_scenarios(layout, figures, random).items():
        result = health_run(layout, scenario.events, scenario.figures, _SCENARIO, _SEED + 3)
        yield _figure(f"wrong drains, {name}", result.drains, "nodes", goal=0)


def _after(faults: list[FoundFault]) -> list[float]:
    """Return the seconds from each onset to its verdict. What was not found took for ever."""
    return [float("inf") if found.found_at is None else found.found_at - found.fault.at for found in faults]


def _p(values: list[float], share: float) -> float:
    return percentile(values, share) or 0.0


def _figure(name: str, value: float, unit: str, goal: float | None = None) -> Figure:
    return Figure(f"gpu_health {name}", value, unit, goal=goal, simulated=True)
