"""A small simulated fleet: one slow worker is replaced; racks, releases, load and lost metrics are not."""

from __future__ import annotations

import numpy
import pytest

from inference_catalog.gpu_faults import fleet_faults, gpu_faults_file
from inference_decisions.repairs.fault_rules import FaultRules
from inference_decisions.repairs.health_settings import HealthSettings
from inference_local.simulators.fleet.fleet_events import (
    FleetEvents,
    GreyFailure,
    HardwareFault,
    RevisionRollout,
    SharedEvent,
    healthy_scenarios,
)
from inference_local.simulators.fleet.fleet_layout import drawn_layout
from inference_local.simulators.fleet.health_simulation import FleetRun, HealthSimulation
from tests.unit.local.simulators.small_fleet import one_release

SCENARIOS = [
    "slow racks",
    "rollouts",
    "load spikes",
    "silent racks",
    "lost metrics",
    "late metrics",
    "doubled metrics",
]


#: One seed for every commit, the others in continuous integration.
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 5))]


def run(events: FleetEvents, *, action: str = "replace", seed: int = 1, minutes: int = 45) -> FleetRun:
    simulation = HealthSimulation(
        one_release(16, racks=4),
        events,
        settings=HealthSettings(action=action, repaired_by={"0": "gpuHealth"}),  # type: ignore[arg-type]
        rules=FaultRules.parsed(gpu_faults_file().read_text()),
        figures=fleet_faults(),
        seed=seed,
    )
    return simulation.run(minutes)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_slow_worker_among_sixteen_is_found_and_replaced(seed: int) -> None:
    result = run(FleetEvents(grey=(GreyFailure(5, 930.0, 0.5),)), seed=seed)
    (found,) = result.faults
    assert found.found_at is not None
    assert found.found_at - 930 <= 240
    assert found.serving_at is not None
    assert (result.drains, result.false_drains) == (1, [])


def test_observing_drains_nothing() -> None:
    result = run(FleetEvents(grey=(GreyFailure(5, 930.0, 0.5),)), action="observe")
    assert result.faults[0].found_at is not None
    assert result.drains == 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "events",
    [
        FleetEvents(shared=(SharedEvent("rack", 2, 930.0, 9e9, slower=0.5),)),
        FleetEvents(shared=(SharedEvent("release", 0, 930.0, 9e9, slower=0.5),)),
        FleetEvents(rollouts=(RevisionRollout(0, 930.0, 60.0, 0.4),)),
        FleetEvents(shared=(SharedEvent("release", 0, 930.0, 1800.0, load=3.0),)),
        FleetEvents(shared=(SharedEvent("rack", 1, 930.0, 1800.0, silent=True),)),
        FleetEvents(shared=(SharedEvent("cell", 0, 930.0, 1800.0, silent=True),)),
        FleetEvents(hardware=(HardwareFault(3, 930.0, "xid", "31", broken=False),)),
    ],
    ids=["rack", "release", "rollout", "spike", "rack silent", "all silent", "application error"],
)
def test_what_no_single_node_is_to_blame_for_drains_nothing(events: FleetEvents, seed: int) -> None:
    assert run(events, seed=seed).drains == 0


@pytest.mark.parametrize("gpus", [None, 1000])
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_drained_in_a_fleet_in_which_nothing_is_broken(name: str, gpus: int | None) -> None:
    random = numpy.random.default_rng(7)
    layout = drawn_layout(gpus, random) if gpus else one_release(16, racks=4)
    scenario = healthy_scenarios(layout, fleet_faults(), random)[name]
    simulation = HealthSimulation(
        layout,
        scenario.events,
        settings=HealthSettings(
            action="replace",
            repaired_by={str(pool): "gpuHealth" for pool in set(layout.pool.tolist())},
        ),
        rules=FaultRules.parsed(gpu_faults_file().read_text()),
        figures=scenario.figures,
        seed=11,
    )
    result = simulation.run(60)
    assert (result.drains, result.false_drains) == (0, [])


def test_every_scenario_changes_something() -> None:
    random = numpy.random.default_rng(7)
    found = healthy_scenarios(one_release(16, racks=4), fleet_faults(), random)
    assert list(found) == SCENARIOS
    for scenario in found.values():
        assert scenario.events != FleetEvents() or scenario.figures != fleet_faults()
        assert not scenario.events.grey
        assert not scenario.events.hardware


def test_a_slow_rack_is_a_finding_of_its_own() -> None:
    result = run(FleetEvents(shared=(SharedEvent("rack", 2, 930.0, 9e9, slower=0.5),)))
    assert ("rack", "2") in result.shifts


def test_a_fatal_error_is_decided_at_once() -> None:
    result = run(FleetEvents(hardware=(HardwareFault(3, 930.0, "xid", "79", broken=True),)))
    (found,) = result.faults
    assert found.found_at is not None
    assert found.found_at - 930 <= fleet_faults().delays["hardware_signal_seconds"]
    assert found.serving_at is not None


def test_a_node_that_is_rebooted_serves_again_and_stays_the_same() -> None:
    """Red if the simulation takes a reboot for a replacement, or the node never serves again."""
    simulation = HealthSimulation(
        one_release(16, racks=4),
        FleetEvents(hardware=(HardwareFault(3, 930.0, "xid", "46", broken=True),)),
        settings=HealthSettings(action="replace", repaired_by={"0": "gpuHealth"}, reboots_per_node_per_day=1),
        rules=FaultRules.parsed(gpu_faults_file().read_text()),
        figures=fleet_faults(),
        seed=1,
        reboot_seconds=180,
    )
    result = simulation.run(45)
    (found,) = result.faults
    assert found.serving_at is not None
    assert simulation._nodes.rebooted == {3: 1}
    assert simulation._nodes.name(3) == "node-3-0"
    assert (result.drains, result.false_drains) == (1, [])


def test_the_same_seed_gives_the_same_fleet() -> None:
    first, second = (drawn_layout(4000, numpy.random.default_rng(3)) for _ in range(2))
    assert numpy.array_equal(first.node, second.node)
    assert first.nodes == 500
