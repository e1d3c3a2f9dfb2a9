"""What workers report reaches CloudWatch late, in parts, or not at all."""

from __future__ import annotations

import json

import pytest

from inference_contracts import health_names
from tests.runtime.gpu_health.test_handlers import replacement
from tests.runtime.gpu_health.world import HealthWorld, report

#: Samples are 25 s old in `report`.
OF_REPORT = 25.0


def minutes(world: HealthWorld, count: int, *, late: float) -> None:
    """Let minutes pass, in which worker-5 is slow and samples come late by some seconds."""
    for _ in range(count):
        world.now += 60
        report(world.cluster, world.now - late, slow={"worker-5": 0.5})
        world.minute()


@pytest.mark.parametrize("late", [40, 60, 120])
def test_a_slow_worker_is_found_though_its_samples_come_late(world: HealthWorld, late: float) -> None:
    """Red if only the newest minute is looked at: with samples of 85 s nobody was ever found."""
    replacement(world)
    report(world.cluster, world.now - late, minutes=12)
    minutes(world, 4, late=late)
    assert world.state("node-5") == "done"
    age = world.now - world.store().read_observation(world.now).metrics_at
    assert late + OF_REPORT - 60 <= age <= late + OF_REPORT


def test_a_window_of_which_a_part_has_arrived_is_not_the_newest_yet(world: HealthWorld) -> None:
    """Red if the worker whose samples come last is never judged."""
    replacement(world)
    report(world.cluster, world.now, minutes=12)
    for _ in range(4):
        world.now += 60
        report(world.cluster, world.now - 60, slow={"worker-5": 0.5})
        for name in ("worker-0", "worker-1"):
            world.cluster.samples.put(world.now - OF_REPORT, health_names.WORKER_REQUESTS, name, 300.0)
        world.minute()
    assert world.state("node-5") == "done"


def test_data_of_more_than_three_minutes_decides_nothing_and_its_age_is_told(
    world: HealthWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Red if old data drains a node, or if nobody hears that no worker reports any more."""
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    report(world.cluster, world.now, minutes=12)
    world.minute()
    minutes(world, 5, late=200)
    assert world.cluster.acts == []
    assert world.case("node-5") is None
    ages = [
        json.loads(line)[health_names.METRICS_AGE_SECONDS][0]
        for line in capsys.readouterr().out.splitlines()
        if "_aws" in line
    ]
    assert ages[0] == 20.0
    assert ages[-1] > 180
