"""A pool that models share by the hour: who gives way first, and what happens if something is not known."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from capacity_shift.shift_run import ShiftRun

from inference_contracts.shift_names import (
    CEILING_SECONDS,
    SharedPool,
    ShiftConfiguration,
    ShiftedWorkers,
    deadlines_identifier,
)
from inference_decisions.capacity_shift.shift_answer import ShiftDecision
from inference_decisions.capacity_shift.shift_decision import decide
from inference_decisions.capacity_shift.shift_view import CellView
from operations.operations_errors import MetricsError
from tests.runtime.capacity_shift.shift_platform import (
    NOW,
    ApiServer,
    Range,
    ShiftPlatform,
    new_platform,
    shared_decision,
    shift_configuration,
    shifted_workers,
)

FIRST = dataclasses.replace(shifted_workers("first", model="live"), priority=100, handover_seconds=150.0)
SECOND = dataclasses.replace(shifted_workers("second", model="shop"), priority=80, handover_seconds=300.0)
LENT = dataclasses.replace(
    shifted_workers("lent", model="nightly"),
    least=0,
    priority=10,
    handover_seconds=200.0,
    batch_only=True,
    scale="apps/v1/deployments",
    tokens_per_accelerator_hour=5.0,
)


class SharedServer(ApiServer):
    """The API server, with the ranges and numbers of the pool."""

    def __init__(self, configuration: ShiftConfiguration) -> None:
        super().__init__(configuration)
        for each in configuration.workers:
            if each.scale:
                del self.objects[f"scaledobjects/{each.name}"]
                self.objects[f"{each.name}/scale"] = {"spec": {"replicas": 0}, "status": {"replicas": 0}}
            else:
                self.objects[f"scaledobjects/{each.name}"]["spec"]["maxReplicaCount"] = 6


def ranges_of(platform: ShiftPlatform) -> dict[str, tuple[int, int]]:
    """Present range of each role."""
    found = {}
    for path, each in platform.api.objects.items():
        spec, (kind, name) = each.get("spec", {}), path.split("/")
        if kind == "scaledobjects":
            found[name] = spec["minReplicaCount"], spec["maxReplicaCount"]
        elif name == "scale":
            found[kind] = spec["replicas"], spec["replicas"]
    return found


@pytest.fixture
def platform(aws_in_process: None) -> ShiftPlatform:
    configuration = dataclasses.replace(
        shift_configuration("shift", FIRST, SECOND, LENT),
        queues=(),
        batch_places={"nightly": 16},
        shared_pools=(SharedPool(pool="l40s", accelerators=12, accelerators_per_node=4),),
    )
    found = new_platform(configuration)
    found.api = SharedServer(configuration)
    return found


def run(platform: ShiftPlatform, ranges: Mapping[ShiftedWorkers, Range], now: float = NOW) -> CellView:
    """Run once with such a decision, and return what it was made from."""
    seen: list[CellView] = []

    def decided(_histories: Any, view: CellView, _state: Any, settings: Any, at: float) -> ShiftDecision:
        seen.append(view)
        named = {each.name: wanted for each, wanted in ranges.items()}
        return shared_decision(view, settings, at, named)

    platform.script.decide = decided  # type: ignore[method-assign, assignment]
    platform.new_run().run(now)
    return seen[0]


def changed(platform: ShiftPlatform) -> list[str]:
    """Names of the objects that were patched, in their order, and forget them."""
    found = [name.removeprefix("scaledobjects/").removesuffix("/scale") for name, _ in platform.api.patches]
    platform.api.patches.clear()
    return found


def test_who_gives_way_goes_first_and_batch_gets_what_is_left_last(platform: ShiftPlatform) -> None:
    """Red if real time starts before batch has stopped, or if floor and ceiling move apart."""
    view = run(platform, {FIRST: (2, 3, 1), SECOND: (2, 3, 0), LENT: (6, 6, 2)})
    assert changed(platform) == [SECOND.name, FIRST.name, LENT.name]
    assert ranges_of(platform) == {FIRST.name: (2, 3), SECOND.name: (2, 3), LENT.name: (6, 6)}
    run(platform, {FIRST: (8, 9, 1), SECOND: (3, 3, 2), LENT: (0, 0, 0)}, NOW + 60)
    assert changed(platform) == [LENT.name, FIRST.name, SECOND.name]
    assert ranges_of(platform) == {FIRST.name: (8, 9), SECOND.name: (3, 3), LENT.name: (0, 0)}
    run(platform, {FIRST: (8, 9, 1), SECOND: (3, 3, 2), LENT: (0, 0, 0)}, NOW + 120)
    assert changed(platform) == [], "what is right already is not written"
    # The decision knows who comes first, how long each takes, and what the pool has.
    first, _, lent = view.deployments
    assert (first.priority, first.handover_seconds, first.batch_only) == (100, 150.0, False)
    assert (lent.minimum, lent.batch_only, lent.tokens_per_accelerator_hour) == (0, True, 5.0)
    (pool,) = view.pools
    assert (pool.accelerators, pool.accelerators_per_node, pool.shared) == (12, 4, True)


def test_batch_gets_nothing_if_real_time_did_not_get_its_range(platform: ShiftPlatform) -> None:
    platform.api.fails_on_patch = FIRST.name
    run(platform, {FIRST: (4, 5, 0), SECOND: (2, 3, 1), LENT: (4, 4, 2)})
    assert ranges_of(platform)[LENT.name] == (0, 0)
    assert ranges_of(platform)[SECOND.name] == (2, 3), "other real time goes on"


def test_a_lower_ceiling_is_not_a_loan(platform: ShiftPlatform) -> None:
    """Red if a role that must give way keeps what it has, because something else failed."""
    platform.api.fails_on_patch = LENT.name
    run(platform, {FIRST: (2, 8, 2), SECOND: (2, 2, 1), LENT: (1, 1, 0)})
    assert ranges_of(platform) == {FIRST.name: (2, 8), SECOND.name: (2, 2), LENT.name: (0, 0)}


def test_a_pool_stays_as_it_is_while_one_of_its_roles_cannot_be_read(platform: ShiftPlatform) -> None:
    """Red if others get what the unknown role may hold."""
    run(platform, {FIRST: (2, 3, 0), SECOND: (2, 3, 1), LENT: (6, 6, 2)})
    changed(platform)
    del platform.api.objects[f"scaledobjects/{SECOND.name}"]
    view = run(platform, {FIRST: (9, 10, 0), SECOND: (2, 2, 1), LENT: (0, 0, 2)}, NOW + 60)
    assert view.deployments == ()
    assert changed(platform) == []
    unread = platform.audits()[-1]["unread"]
    assert unread[FIRST.name] == f"its pool l40s stays as it is, because {SECOND.name} could not be read"
    (ceiling,) = [platform.ceiling("nightly")]
    assert ceiling is not None
    assert ceiling["places"] == 0


def test_a_range_of_the_blueprint_holds_whatever_was_decided(platform: ShiftPlatform) -> None:
    run(platform, {FIRST: (1, 99, 0), SECOND: (9, 3, 1), LENT: (99, 99, 2)})
    assert ranges_of(platform) == {FIRST.name: (2, 10), SECOND.name: (9, 9), LENT.name: (10, 10)}


def minute(platform: ShiftPlatform, runner: ShiftRun, now: float) -> dict[str, tuple[int, int]]:
    """Run once, let autoscalers and numbers follow the floors, and return the ranges."""
    runner.run(now)
    found = ranges_of(platform)
    for name, (floor, _) in found.items():
        status = {"currentReplicas": floor, "desiredReplicas": floor}
        if f"{name}/scale" in platform.api.objects:
            platform.api.objects[f"{name}/scale"]["status"]["replicas"] = floor
        else:
            platform.api.objects[f"horizontalpodautoscalers/keda-hpa-{name}"]["status"] = status
    return found


def says(platform: ShiftPlatform, needed: Mapping[str, Any], at: float) -> None:
    """Write what deadlines need, as batch's scheduler does."""
    for model, places in needed.items():
        record = {"places": places, "at": int(at)}
        platform.batch_table.put_item(Item={"id": deadlines_identifier(model), "record": record})


@pytest.fixture
def nights(platform: ShiftPlatform) -> ShiftPlatform:
    """A second model of batch, which does more for an accelerator."""
    fast = dataclasses.replace(
        LENT, name="fast", release="fast", model="fast", priority=5, tokens_per_accelerator_hour=9.0
    )
    platform.configuration = dataclasses.replace(
        platform.configuration,
        workers=(FIRST, SECOND, LENT, fast),
        batch_places={"nightly": 16, "fast": 16},
    )
    platform.api = SharedServer(platform.configuration)
    platform.script.decide = decide  # type: ignore[method-assign]
    # Real time needs its minimums of two: eight of twelve accelerators are left.
    platform.series.in_flight = {FIRST.release: 2.0, SECOND.release: 2.0}
    return platform


def test_the_night_gets_what_its_deadlines_need_although_others_do_more(nights: ShiftPlatform) -> None:
    """Red if the backlog of a queue does not reach the decision: the other model had all eight places."""
    runner = nights.new_run()
    # Eight of sixteen places are five of ten workers.
    for number in range(12):
        at = NOW + 60 * number
        says(nights, {"nightly": 8, "fast": 0}, at)
        found = minute(nights, runner, at)
    assert (found[LENT.name], found["fast"]) == ((5, 5), (3, 3))
    (record,) = (each for each in nights.audits()[-1]["deployments"] if each["name"] == LENT.name)
    assert record["reasons"][0]["text"] == "real time leaves it 5 replicas; its deadlines need 5"
    # The backlog grows beyond what there is: real time keeps its minimums, and the other model gives way.
    says(nights, {"nightly": 10**6, "fast": 0}, at + 60)
    assert minute(nights, runner, at + 60)[LENT.name] == (8, 8)


def test_workers_that_stay_do_their_part_of_what_deadlines_need(nights: ShiftPlatform) -> None:
    """Red if lent workers are asked for all of it, and real time or another model gives way for nothing."""
    nights.configuration = dataclasses.replace(nights.configuration, fixed_places={"nightly": 6})
    runner = nights.new_run()
    for number in range(12):
        at = NOW + 60 * number
        says(nights, {"nightly": 14, "fast": 0}, at)
        found = minute(nights, runner, at)
    # Without the six places of those that stay, eight of sixteen: five of ten workers.
    assert found[LENT.name] == (5, 5)
    says(nights, {"nightly": 5, "fast": 0}, at + 60)
    minute(nights, runner, at + 60)
    (record,) = (each for each in nights.audits()[-1]["deployments"] if each["name"] == LENT.name)
    assert "its deadlines need 0" in record["reasons"][0]["text"]


@pytest.mark.parametrize("wrong", [None, -1, "many", "old", "future"])
def test_who_is_not_told_what_deadlines_need_holds_what_it_has(nights: ShiftPlatform, wrong: Any) -> None:
    """Red if an unknown, wrong or old backlog takes workers from a role, or gives it those of others."""
    runner = nights.new_run()
    for number in range(12):
        at = NOW + 60 * number
        says(nights, {"nightly": 8, "fast": 0}, at)
        minute(nights, runner, at)
    at += 60 if wrong != "old" else CEILING_SECONDS + 60
    said = {"old": at - CEILING_SECONDS - 1, "future": at + CEILING_SECONDS + 1}
    nights.batch_table.delete_item(Key={"id": deadlines_identifier("nightly")})
    says(
        nights,
        {"fast": 16} if wrong is None else {"fast": 16, "nightly": wrong if wrong not in said else 0},
        at,
    )
    if wrong in said:
        says(nights, {"nightly": 0}, said[wrong])
    found = minute(nights, runner, at)
    assert (found[LENT.name], found["fast"]) == ((5, 5), (3, 3))
    (record,) = (each for each in nights.audits()[-1]["deployments"] if each["name"] == LENT.name)
    assert record["reasons"][0]["code"] == "deadlines_unknown"


def test_a_day_of_the_real_decision_never_asks_for_more_than_the_pool(platform: ShiftPlatform) -> None:
    """Red if ranges together exceed the pool at any minute, or if batch keeps what real time needs."""
    platform.script.decide = decide  # type: ignore[method-assign]
    runner, passed = platform.new_run(), 0

    def pass_minutes(count: int) -> dict[str, tuple[int, int]]:
        nonlocal passed
        for _ in range(count):
            found = minute(platform, runner, NOW + 60 * passed)
            passed += 1
            assert sum(ceiling for _, ceiling in found.values()) <= 12
        return ranges_of(platform)

    quiet = pass_minutes(30)
    assert quiet[FIRST.name][0] + quiet[SECOND.name][0] <= 7
    assert quiet[LENT.name][0] >= 5, "batch has what is left"
    # Rising demand: the first needs ten workers of eight, and all others give way.
    platform.series.in_flight = {FIRST.release: 70.0, SECOND.release: 20.0, LENT.release: 0.0}
    busy = pass_minutes(5)
    assert busy == {FIRST.name: (10, 10), SECOND.name: (2, 2), LENT.name: (0, 0)}
    # Nothing is measured any more: who has the pool keeps it, and batch gets nothing.
    platform.series.fault = MetricsError("no answer")
    assert pass_minutes(10) == busy
