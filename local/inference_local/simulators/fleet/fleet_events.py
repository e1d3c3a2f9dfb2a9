"""What happens to a simulated fleet: faults that have to be found, and events that look like them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy

from inference_catalog.gpu_faults import FleetFaults
from inference_contracts.health_names import FaultKind
from inference_contracts.units import SECONDS_PER_DAY
from inference_local.simulators.fleet.fleet_layout import NODE_GPUS, FleetLayout

#: Slowdowns that are drawn, as shares.
GREY_SIZES = (0.05, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50, 0.75, 1.00)
#: Unit of an event that many workers share.
Shared = Literal["node", "rack", "release", "pool", "cell"]


@dataclass(frozen=True, slots=True)
class GreyFailure:
    """A worker that becomes slower. It stays so until its node is replaced, or until it ends."""

    worker: int
    at: float
    """`at`, `until`: Seconds since the start. `until` is infinite if it stays."""
    slower: float
    """Additional latency per token, as a share."""
    until: float = float("inf")


@dataclass(frozen=True, slots=True)
class HardwareFault:
    """A signal about a node's hardware."""

    node: int
    at: float
    """Seconds since the start."""
    kind: FaultKind
    code: str
    """`kind`, `code`: The signal."""
    broken: bool
    """Whether the node is broken. Application errors break nothing."""


@dataclass(frozen=True, slots=True)
class SharedEvent:
    """What happens to all workers of a unit for a while."""

    unit: Shared
    number: int
    at: float
    until: float
    """`at`, `until`: Seconds since the start."""
    slower: float = 0.0
    """Additional latency per token, as a share. Each worker has its own, by up to a third."""
    load: float = 1.0
    """Load as a multiple of the usual."""
    silent: bool = False
    """Whether metrics are lost."""


@dataclass(frozen=True, slots=True)
class RevisionRollout:
    """A new revision of a release, worker by worker."""

    release: int
    at: float
    """Seconds since the start."""
    worker_seconds: float
    """Time between the restarts of two workers."""
    slower: float
    """Additional latency per token of the new revision, as a share. It may be negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetEvents:
    """Everything that happens."""

    grey: tuple[GreyFailure, ...] = ()
    hardware: tuple[HardwareFault, ...] = ()
    shared: tuple[SharedEvent, ...] = ()
    rollouts: tuple[RevisionRollout, ...] = ()
    """`shared`, `rollouts`: Events that no single node is to blame for."""


def drawn_events(
    layout: FleetLayout, days: float, figures: FleetFaults, random: numpy.random.Generator
) -> FleetEvents:
    """Return the events of some days, at the rates of the catalogue.

    days: Length.
    figures: Rates.
    random: Source of chance.
    """
    gpus, rates = layout.nodes * NODE_GPUS, figures.rates

    def times(per_day: float) -> list[float]:
        return sorted(random.uniform(600, days * SECONDS_PER_DAY, random.poisson(per_day * days)).tolist())

    def node() -> int:
        return int(random.integers(layout.nodes))

    def worker() -> int:
        return int(random.integers(layout.workers))

    def size() -> float:
        return float(random.choice(GREY_SIZES))

    def lasting(at: float) -> float:
        # From less than a minute to nearly ten hours (Greyhound): the logarithm is uniform.
        return at + float(numpy.exp(random.uniform(numpy.log(30), numpy.log(36000))))

    signals: list[tuple[float, FaultKind, tuple[str, ...], bool]] = [
        (rates["xid_fatal_per_gpu_day"] * gpus, "xid", ("79", "74", "119", "48"), True),
        (rates["ecc_fatal_per_gpu_day"] * gpus, "ecc", ("uncorrectable",), True),
        (rates["stopped_per_gpu_day"] * gpus, "gpus_missing", ("allocatable",), True),
        (rates["application_xid_per_gpu_day"] * gpus, "xid", ("13", "31", "43"), False),
    ]
    return FleetEvents(
        grey=tuple(GreyFailure(worker(), at, size()) for at in times(rates["grey_per_gpu_day"] * gpus))
        + tuple(
            GreyFailure(worker(), at, size(), lasting(at))
            for at in times(rates["transient_per_gpu_day"] * gpus)
        ),
        hardware=tuple(
            HardwareFault(node(), at, kind, str(random.choice(codes)), broken)
            for rate, kind, codes, broken in signals
            for at in times(rate)
        ),
        shared=tuple(
            SharedEvent("rack", int(layout.rack[node()]), at, lasting(at), slower=size())
            for at in times(rates["rack_events_per_thousand_gpus_day"] * gpus / 1000)
        )
        + tuple(
            SharedEvent(
                "release",
                int(random.integers(layout.releases)),
                at,
                at + 1800,
                load=float(random.uniform(1.5, 3)),
            )
            for at in times(rates["spikes_per_release_day"] * layout.releases)
        ),
        rollouts=tuple(
            RevisionRollout(int(random.integers(layout.releases)), at, 60.0, float(random.uniform(-0.2, 0.4)))
            for at in times(rates["rollouts_per_release_day"] * layout.releases)
        ),
    )


# What happens to a fleet in which nothing is broken. Each node that is drained in it is drained wrongly.

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
