"""Single rules of the control plane. Each test names the AWS document that decides."""

from __future__ import annotations

from typing import Any

import pytest

from inference_local.emulator.ecs.control.cluster_state import (
    ClusterState,
    EcsInstance,
    EcsTask,
    Health,
    Needs,
    TaskStatus,
)
from inference_local.emulator.ecs.control.host_scaling import (
    HostSize,
    hosts_for,
    wanted_hosts,
)
from inference_local.emulator.ecs.control.rolling_update import TaskView, bounds, next_step, threshold
from inference_local.emulator.ecs.control.service_scheduler import wait_seconds
from inference_local.emulator.ecs.control.task_life import (
    CheckSettings,
    HealthRecord,
    ProtectionError,
    protect,
    task_health,
)
from inference_local.emulator.ecs.control.task_placement import (
    PlacementFailure,
    UnknownExpressionError,
    choose_provider,
    member_of,
    needs_of,
    place,
)
from tests.unit.local.emulator.ecs.control_parts import container


def instance(name: str = "one", **keys: Any) -> EcsInstance:
    given: dict[str, Any] = {
        "identifier": name, "ec2_id": f"i-{name}", "address": "127.64.0.1", "provider": "gpu",
        "instance_type": "g6e.12xlarge", "zone": "a", "cpu": 8192, "memory_mib": 8192,
        "gpu_ids": ("0", "1"), "registered_at": 0.0,
    }  # fmt: skip
    return EcsInstance(**{**given, **keys})


def task(name: str, needs: Needs, on: str | None = None, **keys: Any) -> EcsTask:
    given = EcsTask(name, {"containerDefinitions": []}, needs, "model", "d", "gpu", 0.0, **keys)
    given.instance = on
    if on:
        given.status = TaskStatus.RUNNING
    return given


def cluster(instances: list[EcsInstance], tasks: list[EcsTask]) -> ClusterState:
    return ClusterState(
        "platform", {each.identifier: each for each in instances}, {each.identifier: each for each in tasks}
    )


SMALL = Needs(1024, 1024, 0, frozenset())


def test_shared_memory_counts_beside_the_reservation() -> None:
    # amazon-ecs-agent#1149; API ContainerDefinition: memoryReservation counts, not memory.
    document = {
        "networkMode": "host",
        "containerDefinitions": [
            container(memory=4096, memoryReservation=2048, linuxParameters={"sharedMemorySize": 1024}),
            container(name="side", cpu=512, memory=256, portMappings=[{"containerPort": 8080}]),
        ],
    }
    assert needs_of(document) == Needs(1536, 3328, 0, frozenset({8080}))


def test_the_size_of_the_task_counts_before_its_containers() -> None:
    # API RegisterTaskDefinition, cpu and memory: numbers, or "1 vCPU" and "2GB".
    sized = {"networkMode": "awsvpc", "cpu": "1 vCPU", "memory": "2GB", "containerDefinitions": [container()]}
    assert needs_of(sized) == Needs(1024, 2048, 0, frozenset())


@pytest.mark.parametrize(
    ("needs", "lacks"),
    [
        (Needs(9000, 1, 0, frozenset()), "CPU"),
        (Needs(1, 9000, 0, frozenset()), "memory"),
        (Needs(1, 1, 3, frozenset()), "GPU"),
        (Needs(1, 1, 0, frozenset({80})), "a port required by your task"),
    ],
)
def test_what_an_instance_lacks_is_said(needs: Needs, lacks: str) -> None:
    # service-event-messages-list.html.
    waiting = task("new", needs)
    holder = task("old", Needs(0, 0, 0, frozenset({80})), "one")
    found = place(cluster([instance()], [holder, waiting]), waiting, [], [])
    assert isinstance(found, PlacementFailure)
    assert "closest matching container-instance one" in found.reason
    assert lacks in found.reason


def test_binpack_takes_the_fullest_and_spread_the_emptiest() -> None:
    # task-placement-strategies.html.
    state = cluster([instance("full"), instance("empty", zone="b")], [task("old", SMALL, "full")])
    waiting = task("new", SMALL)
    state.tasks["new"] = waiting
    packed = place(state, waiting, [], [{"type": "binpack", "field": "memory"}])
    spread = place(state, waiting, [], [{"type": "spread", "field": "attribute:ecs.availability-zone"}])
    assert isinstance(packed, EcsInstance)
    assert isinstance(spread, EcsInstance)
    assert (packed.identifier, spread.identifier) == ("full", "empty")


def test_an_instance_that_drains_or_has_lost_its_agent_gets_no_task() -> None:
    # API UpdateContainerInstancesState; API ContainerInstance, agentConnected.
    hosts = [instance("draining", status="DRAINING"), instance("silent", agent_connected=False)]
    assert isinstance(place(cluster(hosts, []), task("new", SMALL), [], []), PlacementFailure)


def test_constraints_of_instances() -> None:
    # cluster-query-language.html.
    host = instance()
    assert member_of(host, "attribute:ecs.instance-type =~ g6e.*")
    assert member_of(host, "attribute:ecs.availability-zone in [a, b] and attribute:ecs.os-type == linux")
    assert not member_of(host, "attribute:ecs.instance-type != g6e.12xlarge")
    assert not member_of(host, "attribute:absent == x")
    with pytest.raises(UnknownExpressionError, match="task:group"):
        member_of(host, "task:group == service:model")


def test_distinct_instance_keeps_tasks_of_a_group_apart() -> None:
    # task-placement-constraints.html.
    old, new = task("old", SMALL, "one", group="service:model"), task("new", SMALL, group="service:model")
    found = place(cluster([instance()], [old, new]), new, [{"type": "distinctInstance"}], [])
    assert isinstance(found, PlacementFailure)


def test_bounds_round_up_and_down() -> None:
    # API DeploymentConfiguration: minimum "rounded up", maximum "rounded down".
    assert bounds(3, 50, 134) == (2, 4)
    assert bounds(3, 67, 133) == (3, 3)
    assert bounds(10, 90, 110) == (9, 11)


def view(name: str, **keys: Any) -> TaskView:
    given: dict[str, Any] = {
        "is_current": True, "is_live": True, "is_healthy": True, "is_failing": False, "drains": False,
        "is_protected": False, "is_pending": False, "zone": "a", "age": 1.0,
    }  # fmt: skip
    return TaskView(identifier=name, **{**given, **keys})


def test_a_task_that_stops_still_counts_towards_the_maximum() -> None:
    # API UpdateContainerInstancesState: at 100 % "replacement tasks can't start until the draining tasks
    # have stopped".
    stopping = view("old", is_live=False, is_current=False, is_healthy=False)
    assert next_step([stopping], 1, 0, 100, may_start=True).start == 0
    assert next_step([stopping], 1, 0, 200, may_start=True).start == 1


def test_unhealthy_tasks_stop_one_by_one_without_room_for_replacements() -> None:
    # API DeploymentConfiguration, minimumHealthyPercent.
    failing = [view(name, is_healthy=False, is_failing=True) for name in ("a", "b")]
    assert len(next_step(failing, 2, 100, 100, may_start=True).stop) == 1
    with_room = next_step(failing, 2, 100, 200, may_start=True)
    assert (with_room.start, with_room.stop) == (2, ())


def test_protection_does_not_hold_a_task_on_a_host_that_drains() -> None:
    # task-scale-in-protection.html: it protects from scale-in and deployments alone.
    old = view("old", is_protected=True, drains=True)
    assert next_step([old, view("new")], 1, 100, 200, may_start=True).stop == ("old",)
    kept = view("old", is_protected=True, is_current=False)
    assert next_step([kept, view("new")], 1, 100, 200, may_start=True).stop == ()


def test_scale_in_takes_the_zone_with_most_tasks() -> None:
    # task-placement.html.
    tasks = [view("a1", age=3), view("a2", age=2), view("b1", zone="b", age=9)]
    assert next_step(tasks, 2, 100, 200, may_start=True).stop == ("a2",)


@pytest.mark.parametrize(
    ("desired", "settings", "expected"),
    [
        (1, {}, 3), (20, {}, 10), (1000, {}, 200),
        (10, {"type": "COUNT", "value": 2}, 2),
        (3, {"type": "UNBOUNDED_PERCENT", "value": 50}, 2),
        (3, {"type": "BOUNDED_PERCENT", "value": 50}, 3),
    ],
)  # fmt: skip
def test_thresholds_of_the_circuit_breaker(desired: int, settings: dict[str, Any], expected: int) -> None:
    # API ThresholdConfiguration; deployment-circuit-breaker.html: 0.5 x desired, from 3 to 200.
    assert threshold(desired, {"thresholdConfiguration": settings} if settings else {}) == expected


def test_failed_checks_count_after_the_start_period_or_the_first_success() -> None:
    # API HealthCheck, retries and startPeriod.
    settings = CheckSettings(interval=10, timeout=5, retries=2, start_period=60)
    record = HealthRecord(settings)
    states = [record.add(passed=False, running_seconds=at) for at in (10, 20, 30, 60, 70)]
    assert states == [Health.UNKNOWN] * 4 + [Health.UNHEALTHY]
    early = HealthRecord(settings)
    assert early.add(passed=True, running_seconds=10) is Health.HEALTHY
    assert [early.add(passed=False, running_seconds=at) for at in (20, 30)] == [
        Health.HEALTHY,
        Health.UNHEALTHY,
    ]
    assert early.add(passed=True, running_seconds=40) is Health.HEALTHY


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([Health.UNHEALTHY, Health.UNKNOWN, Health.HEALTHY], Health.UNHEALTHY),
        ([Health.UNKNOWN, Health.HEALTHY], Health.UNKNOWN),
        ([Health.HEALTHY, Health.HEALTHY], Health.HEALTHY),
        ([], Health.UNKNOWN),
    ],
)
def test_health_of_a_task(containers: list[Health], expected: Health) -> None:
    # API HealthCheck: the examples with two and three containers.
    assert task_health(containers) is expected


def test_a_strategy_fills_its_base_and_then_divides_by_weights() -> None:
    # API CapacityProviderStrategyItem.
    strategy = [
        {"capacityProvider": "demand", "base": 1, "weight": 1},
        {"capacityProvider": "spot", "weight": 3},
    ]
    present: list[str] = []
    for _ in range(9):
        present.append(choose_provider(strategy, present))
    assert present[0] == "demand"
    assert (present.count("demand"), present.count("spot")) == (3, 6)


def test_managed_scaling_keeps_its_target_its_steps_and_the_groups_bounds() -> None:
    # API ManagedScaling; cluster-auto-scaling.html: M / N x 100.
    assert wanted_hosts(9, 0, 9, (0, None), {"targetCapacity": 90}) == 10
    assert wanted_hosts(0, 1, 0, (0, None), {"minimumScalingStepSize": 2}) == 2
    assert wanted_hosts(0, 9, 0, (0, None), {"maximumScalingStepSize": 4}) == 4
    assert wanted_hosts(0, 9, 0, (0, 3), {}) == 3
    assert wanted_hosts(0, 0, 5, (2, 8), {}) == 2


def test_waiting_tasks_are_packed_on_hosts() -> None:
    size = HostSize(8192, 8192, 2)
    half = Needs(1024, 4096, 1, frozenset())
    assert hosts_for([half] * 3, size) == 2
    assert hosts_for([Needs(1, 1, 0, frozenset({80}))] * 2, size) == 2, "the same port on one host conflicts"
    assert hosts_for([Needs(1, 1, 3, frozenset())], size) == 0, "no host takes it"


def test_failed_starts_are_throttled_up_to_27_minutes() -> None:
    # service-throttle-logic.html.
    waits = [wait_seconds(number) for number in range(20)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0, 27 * 60)


@pytest.mark.parametrize("minutes", [0, 2881])
def test_protection_lasts_from_a_minute_to_two_days(minutes: int) -> None:
    # API UpdateTaskProtection: 1 to 2,880 minutes, two hours by default.
    running = task("one", SMALL, "host")
    with pytest.raises(ProtectionError, match="InvalidParameterException"):
        protect(running, minutes, 0)
    protect(running, None, 0)
    assert running.protected_until == 2 * 3600


def test_a_task_without_a_service_cannot_be_protected() -> None:
    # API UpdateTaskProtection: TASK_NOT_VALID.
    alone = task("one", SMALL, "host")
    alone.service = ""
    with pytest.raises(ProtectionError, match="TASK_NOT_VALID"):
        protect(alone, 60, 0)
