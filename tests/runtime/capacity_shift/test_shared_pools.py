"""A pool that models share by the hour: who gives way first, and what happens if something is not known."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from inference_contracts.shift_names import SharedPool, ShiftConfiguration, ShiftedWorkers
from inference_decisions.capacity_shift.shift_answer import DeploymentDecision, ShiftDecision
from inference_decisions.capacity_shift.shift_decision import decide
from inference_decisions.capacity_shift.shift_view import CellView, ShiftState
from operations.operations_errors import MetricsError
from tests.runtime.capacity_shift.shift_platform import (
    NOW,
    REASON,
    ApiServer,
    ShiftPlatform,
    new_platform,
    shift_configuration,
    shifted_workers,
)

#: Floor, ceiling and place in the order of a role.
Range = tuple[int, int, int]

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
        return ShiftDecision(
            decided_at=at,
            carried_out=settings.freeze != "frozen",
            deployments=tuple(
                DeploymentDecision(
                    name=each.name,
                    floor=named[each.name][0],
                    ceiling=named[each.name][1],
                    drain_order=named[each.name][2],
                    batch_places=4,
                    lent=0.0,
                    reasons=REASON,
                    forecast=None,
                )
                for each in view.deployments
            ),
            pools=(),
            state=ShiftState(decided_at=at),
        )

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


def test_a_day_of_the_real_decision_never_asks_for_more_than_the_pool(platform: ShiftPlatform) -> None:
    """Red if ranges together exceed the pool at any minute, or if batch keeps what real time needs."""
    platform.script.decide = decide  # type: ignore[method-assign]
    runner, minute = platform.new_run(), 0

    def pass_minutes(count: int) -> dict[str, tuple[int, int]]:
        nonlocal minute
        for _ in range(count):
            runner.run(NOW + 60 * minute)
            minute += 1
            found = ranges_of(platform)
            assert sum(ceiling for _, ceiling in found.values()) <= 12
            for name, (floor, _) in found.items():
                # The autoscaler follows, and no load asks for more.
                status = {"currentReplicas": floor, "desiredReplicas": floor}
                if name == LENT.name:
                    platform.api.objects[f"{name}/scale"]["status"]["replicas"] = floor
                else:
                    platform.api.objects[f"horizontalpodautoscalers/keda-hpa-{name}"]["status"] = status
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
