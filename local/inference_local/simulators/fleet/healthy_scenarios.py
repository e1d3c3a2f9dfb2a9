"""What happens to a fleet in which nothing is broken. Each node that is drained in it is drained wrongly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy

from inference_catalog.gpu_faults import FleetFaults
from inference_local.simulators.fleet.fleet_events import (
    GREY_SIZES,
    FleetEvents,
    RevisionRollout,
    SharedEvent,
)
from inference_local.simulators.fleet.fleet_layout import FleetLayout

_START = 1200.0
_FOR_EVER = float("inf")
#: Units that are hit, as a share of all.
_HIT = 0.1


@dataclass(frozen=True, slots=True)
class HealthyScenario:
    """One scenario."""

    events: FleetEvents
    """What happens."""
    figures: FleetFaults
    """Noise, and what the metrics lose."""


def healthy_scenarios(
    layout: FleetLayout, figures: FleetFaults, random: numpy.random.Generator
) -> dict[str, HealthyScenario]:
    """Return the scenarios by name. Each begins after 20 minutes.

    figures: Usual noise.
    random: Source of chance: which racks and releases are hit, and how much.
    """

    def hit(units: int) -> list[int]:
        number = max(1, round(_HIT * units))
        return sorted(random.choice(units, size=number, replace=False).tolist())

    racks, releases = int(layout.rack.max()) + 1, layout.releases
    return {
        "slow racks": HealthyScenario(
            FleetEvents(
                shared=tuple(
                    SharedEvent("rack", rack, _START, _FOR_EVER, slower=float(random.choice(GREY_SIZES)))
                    for rack in hit(racks)
                )
            ),
            figures,
        ),
        "rollouts": HealthyScenario(
            FleetEvents(
                rollouts=tuple(
                    RevisionRollout(release, _START, 60.0, float(random.uniform(-0.2, 0.4)))
                    for release in hit(releases)
                )
            ),
            figures,
        ),
        "load spikes": HealthyScenario(
            FleetEvents(
                shared=tuple(
                    SharedEvent(
                        "release", release, _START, _START + 1800, load=float(random.uniform(1.5, 3.0))
                    )
                    for release in hit(releases)
                )
            ),
            figures,
        ),
        "silent racks": HealthyScenario(
            FleetEvents(
                shared=tuple(
                    SharedEvent("rack", rack, _START, _START + 900, silent=True) for rack in hit(racks)
                )
            ),
            figures,
        ),
        "lost metrics": HealthyScenario(FleetEvents(), _noisier(figures, "lost", 0.2)),
        "late metrics": HealthyScenario(FleetEvents(), _noisier(figures, "late", 0.3)),
        "doubled metrics": HealthyScenario(FleetEvents(), _noisier(figures, "doubled", 0.1)),
    }


def _noisier(figures: FleetFaults, name: str, share: float) -> FleetFaults:
    return replace(figures, noise={**figures.noise, name: share})
