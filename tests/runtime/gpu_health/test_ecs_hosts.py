"""GPU health on Amazon ECS: hosts are drained and replaced by their groups, once, whatever fails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from moto import mock_aws

from gpu_health.health_platform import health_platform
from gpu_health.health_run import begin
from inference_contracts import operations_names
from inference_contracts.ecs_names import POOL_ATTRIBUTE
from inference_contracts.health_names import DRAIN_ATTRIBUTE
from operations.operations_errors import MetricsError
from tests.runtime.gpu_health.fake_ecs import CLUSTER, FakeEcs, Host
from tests.runtime.gpu_health.test_breaker import contributors
from tests.runtime.gpu_health.test_faults import attempt
from tests.runtime.gpu_health.world import NOW, QUIET, HealthWorld, prepared, report, xid_event
from tests.runtime.operations.fresh_process import NOBODY, begin_anew

THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, "any")
LATE = ReadTimeoutError(endpoint_url="https://aws")
TERMINATION = "TerminateInstanceInAutoScalingGroup"


@pytest.fixture
def ecs() -> Iterator[FakeEcs]:
    """A cluster with eight hosts that have a worker each."""
    with FakeEcs() as cluster:
        cluster.populate(NOW)
        yield cluster


@pytest.fixture
def world(ecs: FakeEcs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HealthWorld]:
    """The cell of that cluster. The functions get the variables of ECS, and none of EKS."""
    begin_anew(monkeypatch, NOBODY | QUIET)
    with mock_aws(), prepared(ecs, monkeypatch, tmp_path) as made:
        for name in ("CLUSTER", "CLUSTER_ENDPOINT", "CLUSTER_AUTHORITY"):
            monkeypatch.delenv(getattr(operations_names, name))
        monkeypatch.setenv(operations_names.ECS_CLUSTER, CLUSTER)
        ecs.install(made)
        yield made


def fatal(world: HealthWorld, host: str = "i-3") -> dict[str, Any]:
    return xid_event(host, at=world.now - 30)


def test_a_fatal_xid_replaces_its_host(world: HealthWorld, ecs: FakeEcs) -> None:
    world.hardware(fatal(world))
    case = world.case("i-3")
    assert case is not None
    assert (case.state, case.replacement, case.owner_name) == ("done", "i-new-1", "group-h200")
    # The mark is first, and what is drained is terminated once.
    assert ecs.changes == ["PutAttributes", "UpdateContainerInstancesState", TERMINATION]
    assert (ecs.draining(), ecs.desired, len(ecs.group)) == ([], 8, 8)
    assert world.store().places(world.now)[0] == {"h200": []}


def test_a_host_is_rebooted_and_opened_when_its_agent_is_back(world: HealthWorld, ecs: FakeEcs) -> None:
    """Red if a host is terminated although a reboot mends it, or gets tasks before it went down."""
    world.settings(rebootsPerNodePerDay=1)
    world.hardware(xid_event("i-3", "46", at=world.now - 30))
    world.minutes(1)
    assert (world.state("i-3"), ecs.draining()) == ("rebooting", ["i-3"])
    ecs.hosts["i-3"].connected = False
    world.minutes(2)
    ecs.hosts["i-3"].connected = True
    world.minutes(1)
    assert (world.state("i-3"), ecs.draining(), ecs.terminations()) == ("done", [], 0)
    assert ecs.changes.count("RebootInstances") == 1
    assert DRAIN_ATTRIBUTE not in ecs.hosts["i-3"].attributes


def test_the_lowest_network_node_is_the_rack(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.hosts["i-1"].network = ()
    racks = {node.name: node.rack for node in begin(health_platform(), lambda: world.now).repairs.nodes()}
    assert (racks["i-0"], racks["i-1"]) == ("nn-3", "")


def test_hosts_are_replaced_without_known_racks(world: HealthWorld, ecs: FakeEcs) -> None:
    world.failing["DescribeInstanceTopology"] = THROTTLED
    world.hardware(fatal(world))
    assert (world.state("i-3"), ecs.terminations()) == ("done", 1)


def test_observe_changes_nothing(world: HealthWorld, ecs: FakeEcs) -> None:
    world.settings(action="observe")
    world.hardware(fatal(world))
    world.minutes(2)
    assert (world.state("i-3"), ecs.changes) == ("confirmed", [])


def test_a_host_is_terminated_only_when_its_streams_have_ended(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.tasks_end = False
    world.hardware(fatal(world))
    # ECS wants the task stopped, and its streams go on for some minutes.
    ecs.pods["worker-3"] |= {"wanted": "STOPPED", "status": "STOPPING"}
    world.minutes(3)
    assert (world.state("i-3"), ecs.draining(), ecs.terminations()) == ("draining", ["i-3"], 0)
    ecs.end_tasks(ecs.hosts["i-3"])
    world.minutes(1)
    assert (world.state("i-3"), ecs.terminations()) == ("done", 1)


def test_a_slow_worker_is_found_and_its_host_replaced(world: HealthWorld, ecs: FakeEcs) -> None:
    report(ecs, world.now, minutes=10)
    for _ in range(3):
        world.now += 60
        report(ecs, world.now, slow={"worker-5": 0.5})
        world.minute()
    assert (world.state("i-5"), ecs.terminations()) == ("done", 1)


def test_a_worker_that_began_to_report_a_minute_ago_is_not_compared(world: HealthWorld, ecs: FakeEcs) -> None:
    """ECS does not say since when a task is healthy: the first five minutes count from its first samples."""
    slow = ecs.pods.pop("worker-5")
    report(ecs, world.now, minutes=10)
    ecs.pods["worker-5"] = slow
    for _ in range(3):
        world.now += 60
        report(ecs, world.now, slow={"worker-5": 0.5})
        world.minute()
    assert (world.state("i-5"), ecs.changes) == ("", [])


def test_missing_gpus_are_found_by_the_exporter(world: HealthWorld, ecs: FakeEcs) -> None:
    report(ecs, world.now, minutes=10)
    ecs.samples.nodes["i-2"]["gpus"] = 7.0
    world.minutes(4)
    assert (world.state("i-2"), ecs.terminations()) == ("done", 1)


def test_the_replacement_counts_when_its_gpus_and_the_workers_are_there(
    world: HealthWorld, ecs: FakeEcs
) -> None:
    ecs.starts = False
    world.hardware(fatal(world))
    world.minutes(1)
    assert world.state("i-3") == "verifying"
    name = ecs.start(world.now)
    ecs.samples.nodes[name]["gpus"] = 7.0
    world.minutes(1)
    assert world.state("i-3") == "verifying"
    ecs.samples.nodes[name]["gpus"] = 8.0
    ecs.pods["worker-new-1"]["health"] = "UNKNOWN"
    world.minutes(1)
    assert world.state("i-3") == "verifying"
    ecs.pods["worker-new-1"]["health"] = "HEALTHY"
    world.minutes(1)
    assert world.state("i-3") == "done"


def test_workers_on_other_hosts_serve_too_if_the_group_wants_fewer(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.starts = False
    world.hardware(fatal(world))
    ecs.wanted = ecs.desired = 7
    world.minutes(1)
    case = world.case("i-3")
    assert case is not None
    assert (case.state, case.replacement) == ("done", "")


def test_a_group_that_wants_another_host_is_waited_for(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.starts = False
    world.hardware(fatal(world))
    # The worker found a place on a host that was there.
    ecs.wanted = 7
    world.minutes(2)
    assert world.state("i-3") == "verifying"
    ecs.start(world.now)
    world.minutes(1)
    assert world.state("i-3") == "done"


def test_a_replacement_that_never_comes_is_told(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.starts = False
    world.hardware(fatal(world))
    world.now += 1900
    world.minutes(1)
    case = world.case("i-3")
    assert case is not None
    assert (case.state, case.reason, len(world.messages)) == ("gave_up", "no_replacement", 1)
    assert world.store().places(world.now)[0] == {"h200": []}


def test_a_drain_that_does_not_end_is_told(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.tasks_end = False
    world.hardware(fatal(world))
    world.now += 1000
    world.minutes(1)
    case = world.case("i-3")
    assert case is not None
    assert (case.state, case.reason, ecs.terminations()) == ("gave_up", "drain_too_long", 0)
    assert (ecs.draining(), len(world.messages)) == (["i-3"], 1)


def test_a_drain_that_ecs_refuses_is_given_up_and_told(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.refuses = "INACTIVE"
    world.hardware(fatal(world))
    world.minutes(6)
    assert (world.state("i-3"), ecs.draining(), ecs.terminations()) == ("gave_up", [], 0)
    assert "INACTIVE" in world.messages[0]["Message"]
    assert world.store().places(world.now)[0] == {"h200": []}


def test_an_instance_that_is_gone_already_clears_or_is_verified(world: HealthWorld, ecs: FakeEcs) -> None:
    world.settings(action="observe")
    world.hardware(fatal(world))
    ecs.remove_host("i-3")
    world.minutes(1)
    assert world.state("i-3") == "cleared"
    world.settings()
    ecs.tasks_end = False
    ecs.start(world.now)
    world.hardware(fatal(world, "i-4"))
    assert world.state("i-4") == "draining"
    ecs.remove_host("i-4")
    ecs.start(world.now)
    world.minutes(1)
    assert (world.state("i-4"), ecs.terminations()) == ("done", 0)


def test_a_host_that_somebody_else_drains_is_left_alone(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.hosts["i-3"].status = "DRAINING"
    world.hardware(fatal(world))
    case = world.case("i-3")
    assert case is not None
    assert (case.state, case.reason, ecs.changes) == ("confirmed", "cordoned_by_others", [])


def test_a_host_that_somebody_opens_again_keeps_serving(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.tasks_end = False
    world.hardware(fatal(world))
    ecs.hosts["i-3"].status = "ACTIVE"
    world.minutes(1)
    assert (world.state("i-3"), ecs.terminations()) == ("cleared", 0)
    assert DRAIN_ATTRIBUTE not in ecs.hosts["i-3"].attributes


def test_a_drain_is_taken_back_once(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.tasks_end = False
    world.hardware(fatal(world))
    case = world.case("i-3")
    assert case is not None
    repairs = begin(health_platform(), lambda: world.now).repairs
    for _ in range(2):
        repairs.uncordon(case)
    assert (ecs.hosts["i-3"].status, ecs.hosts["i-3"].attributes) == ("ACTIVE", {POOL_ATTRIBUTE: "h200"})
    assert ecs.changes[2:] == ["UpdateContainerInstancesState", "DeleteAttributes"]


@pytest.mark.parametrize(
    "instance",
    [
        {"InstanceLifecycle": "capacity-block", "CapacityReservationId": "cr-1"},
        {
            "CapacityReservationId": "cr-1",
            "CapacityReservationSpecification": {
                "CapacityReservationTarget": {"CapacityReservationId": "cr-1"}
            },
        },
    ],
    ids=["block", "reservation"],
)
def test_reserved_capacity_is_replaced_only_with_a_spare_place(
    world: HealthWorld, ecs: FakeEcs, instance: dict[str, Any]
) -> None:
    for name in ("i-3", "i-4"):
        ecs.hosts[name].instance = instance
    world.hardware(fatal(world))
    assert (world.state("i-3"), ecs.changes, len(world.messages)) == ("refused", [], 1)
    ecs.free_places = 1
    world.hardware(fatal(world, "i-4"))
    assert (world.state("i-4"), ecs.terminations()) == ("done", 1)


def test_without_a_group_nothing_is_drained(world: HealthWorld, ecs: FakeEcs) -> None:
    ecs.group.discard("i-3")
    world.hardware(fatal(world))
    case = world.case("i-3")
    assert case is not None
    assert (case.state, case.reason, ecs.changes) == ("refused", "no_owner", [])


def test_managed_instances_are_recorded_by_the_check_of_ecs_and_left_to_it(
    world: HealthWorld, ecs: FakeEcs
) -> None:
    world.settings(repairedBy={"l40s": "karpenter", "h200": "gpuHealth"})
    since = datetime.fromtimestamp(world.now - 60, UTC)
    check = {"type": "ACCELERATED_COMPUTE", "status": "IMPAIRED", "lastStatusChange": since}
    host = Host("i-managed", world.now - 9000, provider="managed-chat-l40s", checks=[check], gpus=0)
    ecs.add_host(host)
    # No exporter runs on Managed Instances.
    del ecs.samples.nodes["i-managed"]
    world.minutes(1)
    case = world.case("i-managed")
    assert case is not None
    assert (case.pool, case.state, ecs.changes) == ("l40s", "suspected", [])
    # GPUs that it does not list are not missing.
    assert [each.code for each in case.evidence] == ["accelerated_compute"]


def test_a_host_of_a_group_that_registers_no_gpu_is_replaced(world: HealthWorld, ecs: FakeEcs) -> None:
    report(ecs, world.now, minutes=10)
    ecs.hosts["i-2"].gpus = 0
    world.minutes(4)
    assert (world.state("i-2"), ecs.terminations()) == ("done", 1)


def test_the_table_that_is_lost_in_the_middle_is_filled_from_the_hosts(
    world: HealthWorld, ecs: FakeEcs
) -> None:
    ecs.tasks_end = False
    world.hardware(fatal(world))
    assert world.state("i-3") == "draining"
    world.lose_the_table()
    world.hardware(fatal(world, "i-4"))
    assert ecs.draining() == ["i-3"]
    ecs.end_tasks(ecs.hosts["i-3"])
    world.minutes(1)
    case = world.case("i-3")
    assert case is not None
    assert (case.state, case.evidence[0].code, ecs.terminations()) == ("done", "79", 1)


@pytest.mark.parametrize(
    "error",
    [pytest.param(THROTTLED, id="throttled"), pytest.param(LATE, id="late", marks=pytest.mark.thorough)],
)
@pytest.mark.parametrize(
    "operation",
    [
        "ListContainerInstances",
        "DescribeTasks",
        "DescribeServices",
        "PutAttributes",
        "UpdateContainerInstancesState",
        "DescribeAutoScalingInstances",
        "DescribeInstances",
        TERMINATION,
    ],
)
def test_a_call_that_fails_for_a_while_delays_a_replacement(
    world: HealthWorld, ecs: FakeEcs, operation: str, error: Exception
) -> None:
    world.failing[operation] = error
    attempt(lambda: world.hardware(fatal(world)))
    attempt(lambda: world.minutes(2))
    world.failing.clear()
    attempt(lambda: world.hardware(fatal(world)))
    world.minutes(2)
    assert (world.state("i-3"), ecs.terminations()) == ("done", 1)


@pytest.mark.parametrize("operation", ["UpdateContainerInstancesState", TERMINATION])
def test_an_answer_that_is_lost_does_not_double_an_act(
    world: HealthWorld, ecs: FakeEcs, operation: str
) -> None:
    world.lost[operation] = LATE
    world.hardware(fatal(world))
    world.lost.clear()
    world.minutes(2)
    assert (world.state("i-3"), ecs.terminations()) == ("done", 1)
    assert ecs.changes.count("UpdateContainerInstancesState") == 1


@pytest.mark.thorough
def test_killed_after_every_call_a_replacement_is_resumed_and_not_doubled(
    world: HealthWorld, ecs: FakeEcs
) -> None:
    """The function is killed after its first change, its second, and so on, each time in another cell."""
    replaced = 0
    for last in range(1, 60):
        world.lose_the_table()
        ecs.hosts.clear()
        ecs.pods.clear()
        ecs.changes.clear()
        ecs.populate(world.now)
        with world.killed_after(last) as calls:
            world.hardware(fatal(world))
        world.hardware(fatal(world))
        world.minutes(2)
        assert ecs.terminations() == 1, f"killed after {calls.made[-1]}"
        assert world.state("i-3") in ("done", ""), f"killed after {calls.made[-1]}"
        assert ecs.draining() == []
        assert not world.store().places(world.now)[0].get("h200")
        replaced += 1
        world.now += 7200
        if len(calls.made) < last:
            break
    assert replaced > 8


def test_a_function_on_eks_still_needs_the_address_of_its_cluster(
    world: HealthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(operations_names.ECS_CLUSTER)
    health_platform.cache_clear()
    with pytest.raises(Exception, match=operations_names.CLUSTER_ENDPOINT):
        world.minute()


def test_a_host_whose_agent_is_away_for_long_reaches_people(world: HealthWorld, ecs: FakeEcs) -> None:
    """Red if nobody owns a host that ECS cannot reach, or if an agent that connects anew is a fault."""
    ecs.hosts["i-3"].connected = False
    world.minutes(1)
    ecs.hosts["i-3"].connected = True
    world.minutes(1)
    assert world.state("i-3") == "cleared"
    ecs.hosts["i-3"].connected = ecs.tasks_end = False
    world.minutes(1)
    world.now += 1740
    world.minutes(2)
    assert (world.state("i-3"), ecs.draining()) == ("draining", ["i-3"])
    world.now += 900
    world.minutes(1)
    assert (world.state("i-3"), len(world.messages)) == ("gave_up", 1)


@pytest.mark.parametrize("failing", ["", "DescribeInstances"])
def test_twelve_hosts_in_alarm_are_read_with_few_calls(
    world: HealthWorld, ecs: FakeEcs, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Red if hosts in alarm are asked for one by one, in two calls of Auto Scaling and EC2 each.

    If one of these services does not answer, nothing is done to any of them, and the run goes on.
    """
    for number in range(8, 24):
        ecs.add_host(Host(f"i-{number}", NOW - 86400), task=f"worker-{number}")
    ecs.group, ecs.desired = set(ecs.hosts), len(ecs.hosts)

    def late(*_: object) -> NoReturn:
        raise MetricsError("CloudWatch is late")

    monkeypatch.setattr("gpu_health.minute.read_windows", late)
    contributors(world, *(f"i-{number}" for number in range(8, 20)))
    if not failing:
        world.settings(action="observe")
    if failing:
        world.failing[failing] = THROTTLED
    world.minutes(1)
    assert len([*world.store().cases(world.now)]) == 12
    assert ecs.changes == []
    if not failing:
        # Of the tasks, those that are to run and those that are to stop.
        assert ecs.asked.pop("ListTasks") == 2
        assert set(ecs.asked.values()) == {1}, ecs.asked
        assert {"DescribeAutoScalingInstances", "DescribeInstances"} <= ecs.asked.keys()


def test_one_host_is_looked_for_and_not_all(world: HealthWorld, ecs: FakeEcs) -> None:
    """Red if each act on a host lists all hosts of the cluster."""
    for number in range(8, 250):
        ecs.add_host(Host(f"i-{number}", NOW - 86400))
    assert begin(health_platform(), lambda: world.now).repairs.node("i-200") is not None
    assert set(ecs.asked.values()) == {1}
    assert begin(health_platform(), lambda: world.now).repairs.node("i-gone") is None
