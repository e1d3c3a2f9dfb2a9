"""Runs of GPU health on simulated fleets."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy

from inference_catalog.gpu_faults import FleetFaults, fleet_faults, gpu_faults_file
from inference_contracts.units import MINUTES_PER_DAY
from inference_decisions.repairs.fault_rules import FaultRules
from inference_decisions.repairs.health_settings import HealthSettings
from inference_local.simulators.fleet.fleet_events import FleetEvents, drawn_events
from inference_local.simulators.fleet.fleet_layout import FleetLayout, drawn_layout
from inference_local.simulators.fleet.health_simulation import FleetRun, HealthSimulation


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run."""

    layout: FleetLayout
    result: FleetRun
    """What happened."""
    seconds: float
    """Processor time."""


def usual_run(gpus: int, minutes: int, seed: int) -> MeasuredRun:
    """Return what happens to a fleet at the rates of the catalogue.

    gpus: Size of the fleet.
    minutes: Length.
    seed: Seed of chance.
    """
    started = time.process_time()
    random = numpy.random.default_rng(seed)
    layout, figures = drawn_layout(gpus, random), fleet_faults()
    events = drawn_events(layout, minutes / MINUTES_PER_DAY, figures, random)
    result = health_run(layout, events, figures, minutes, seed + 1)
    return MeasuredRun(layout, result, time.process_time() - started)


def health_run(
    layout: FleetLayout,
    events: FleetEvents,
    figures: FleetFaults,
    minutes: int,
    seed: int,
    *,
    reboots: int = 0,
    reboot_seconds: float = 0.0,
) -> FleetRun:
    """Return what GPU health does that replaces nodes of all pools.

    layout, events, figures: The fleet, what happens to it, and its noise.
    reboots: How often a node is rebooted a day before it is replaced.
    reboot_seconds: How long a reboot takes.
    """
    pools = {str(pool): "gpuHealth" for pool in set(layout.pool.tolist())}
    return HealthSimulation(
        layout,
        events,
        settings=HealthSettings(
            action="replace",
            repaired_by=pools,  # type: ignore[arg-type]
            reboots_per_node_per_day=reboots,
        ),
        rules=FaultRules.parsed(gpu_faults_file().read_text(encoding="utf-8")),
        figures=figures,
        seed=seed,
        reboot_seconds=reboot_seconds,
    ).run(minutes)
