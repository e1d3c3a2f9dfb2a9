"""Targets of the load balancer: the rules of Elastic Load Balancing that `load_balancer` names."""

from __future__ import annotations

from inference_local.emulator.ecs.network.load_balancer import (
    GroupSettings,
    RegisteredTarget,
    TargetState,
    TargetTable,
)

GROUP = "group"


def settings(**attributes: str) -> GroupSettings:
    group = {
        "HealthCheckPath": "/live",
        "HealthCheckIntervalSeconds": 10,
        "HealthCheckTimeoutSeconds": 5,
        "HealthyThresholdCount": 3,
        "UnhealthyThresholdCount": 2,
        "Matcher": {"HttpCode": "200,202-203"},
    }
    return GroupSettings.of(group, attributes)


def healthy(table: TargetTable, address: str) -> RegisteredTarget:
    target = table.add(GROUP, address, 80)
    assert target is not None
    target.add_check(settings(), passed=True)
    assert target.state is TargetState.HEALTHY
    return target


def test_a_matcher_lists_codes_and_ranges() -> None:
    assert settings().codes == {200, 202, 203}


def test_one_check_makes_a_new_target_healthy_and_thresholds_hold_afterwards() -> None:
    target = RegisteredTarget("a", 80)
    states = []
    for passed in (False, True, False, True, False, False, True, True, True):
        target.add_check(settings(), passed=passed)
        states.append(str(target.state))
    assert states == [
        *("initial", "healthy", "healthy", "healthy", "healthy", "unhealthy"),
        *("unhealthy", "unhealthy", "healthy"),
    ]


def test_requests_go_to_the_target_with_the_fewest() -> None:
    table = TargetTable()
    targets = [healthy(table, name) for name in ("a", "b")]
    busy = table.choose(GROUP, least_outstanding=True)
    assert busy is not None
    chosen = [table.choose(GROUP, least_outstanding=True) for _ in range(3)]
    assert sorted(each.open_requests for each in targets) == [2, 2]
    assert busy in chosen
    table.finish(busy)
    assert table.choose(GROUP, least_outstanding=True) is busy


def test_only_healthy_targets_get_requests_unless_there_are_none() -> None:
    table = TargetTable()
    table.add(GROUP, "new", 80)
    fallback = table.choose(GROUP, least_outstanding=False)
    assert fallback is not None
    assert fallback.address == "new"
    healthy(table, "good")
    for _ in range(3):
        chosen = table.choose(GROUP, least_outstanding=False)
        assert chosen is not None
        assert chosen.address == "good"


def test_a_draining_target_is_unused_once_it_is_idle_or_its_delay_is_over() -> None:
    table = TargetTable()
    target = healthy(table, "a")
    assert table.choose(GROUP, least_outstanding=False) is target
    table.drain(GROUP, "a", 80, ends_at=100)
    assert table.choose(GROUP, least_outstanding=False) is None
    assert table.find(GROUP, "a", 80, now=50) is target
    assert table.find(GROUP, "a", 80, now=100) is None
    assert target.closed.is_set()
    idle = healthy(table, "b")
    table.drain(GROUP, "b", 80, ends_at=100)
    assert table.find(GROUP, "b", 80, now=1) is None
    assert idle.closed.is_set()
