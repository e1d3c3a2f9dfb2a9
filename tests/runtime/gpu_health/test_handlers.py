"""From an event or a minute to a node that was replaced, and what keeps it from that."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ReadTimeoutError

from gpu_health import minute
from inference_contracts import health_names, operations_names
from operations.operations_errors import OperationsError
from tests.runtime.gpu_health.fake_cluster import node_object, pod_object
from tests.runtime.gpu_health.world import PLATFORM, HealthWorld, report, xid_event


def replacement(world: HealthWorld, name: str = "node-new") -> None:
    """Let Karpenter replace a node as soon as its NodeClaim is deleted."""

    def deleted(claim: str) -> None:
        world.cluster.remove_node(claim.removeprefix("claim-"))
        world.cluster.add_node(
            node_object(name, created=world.now + 1), pod_object(f"pod-{name}", name, ready=world.now + 2)
        )

    world.cluster.on_claim_deleted = deleted


def test_a_fatal_xid_replaces_its_node(world: HealthWorld) -> None:
    replacement(world)
    report(world.cluster, world.now)
    world.hardware(xid_event("node-3", at=world.now - 30))
    case = world.case("node-3")
    assert case is not None
    # Its pod ended at the eviction, so the NodeClaim is deleted in the same run.
    assert case.state == "done"
    assert case.replacement == "node-new"
    assert world.cluster.deleted_claims() == ["DELETE /apis/karpenter.sh/v1/nodeclaims/claim-node-3"]
    assert world.cluster.cordoned() == []
    assert world.store().places(world.now)[0] == {"h200": []}


def test_a_slow_worker_is_found_and_its_node_replaced(world: HealthWorld) -> None:
    replacement(world)
    report(world.cluster, world.now, minutes=10)
    for passed in range(3):
        world.now += 60
        report(world.cluster, world.now, slow={"worker-5": 0.5})
        world.minute()
        assert (world.state("node-5") == "done") == (passed >= 1)
    assert len(world.cluster.deleted_claims()) == 1


def test_a_slow_rack_is_nobodys_fault(world: HealthWorld) -> None:
    report(world.cluster, world.now, minutes=10)
    for _ in range(4):
        world.now += 60
        report(world.cluster, world.now, slow={"worker-1": 0.5, "worker-5": 0.5})
        world.minute()
    assert world.cluster.acts == []
    assert ("rack", "rack-1") in world.store().read_observation(world.now).shifts


def test_a_slower_release_is_nobodys_fault(world: HealthWorld) -> None:
    report(world.cluster, world.now, minutes=10)
    slow = {f"worker-{number}": 0.5 for number in range(8)}
    for _ in range(4):
        world.now += 60
        report(world.cluster, world.now, slow=slow)
        world.minute()
    assert world.cluster.acts == []


def test_observing_records_and_does_nothing(world: HealthWorld) -> None:
    world.settings(action="observe")
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.minutes(3)
    case = world.case("node-3")
    assert case is not None
    assert (case.state, case.reason, world.cluster.acts) == ("confirmed", "observe", [])


@pytest.mark.parametrize("value", ["all", "health", "perhaps"])
def test_a_freeze_in_the_middle_of_a_replacement_stops_it(world: HealthWorld, value: str) -> None:
    replacement(world)
    world.cluster.pods_end = False
    world.hardware(xid_event("node-3", at=world.now - 30))
    assert world.state("node-3") == "draining"
    world.freeze(value)
    world.cluster.pods.pop("worker-3")
    acts = len(world.cluster.acts)
    world.minutes(3)
    assert (world.state("node-3"), len(world.cluster.acts)) == ("draining", acts)
    world.freeze("shift")
    world.minutes(1)
    assert world.state("node-3") == "done"


def test_a_switch_that_cannot_be_read_freezes(world: HealthWorld) -> None:
    world.failing["GetParameter"] = ReadTimeoutError(endpoint_url="ssm")
    world.hardware(xid_event("node-3", at=world.now - 30))
    case = world.case("node-3")
    assert case is not None
    assert (case.state, case.reason, world.cluster.acts) == ("confirmed", "frozen", [])


def test_an_event_that_comes_twice_or_late_does_nothing_more(
    world: HealthWorld,
) -> None:
    replacement(world)
    event = xid_event("node-3", at=world.now - 30)
    for _ in range(3):
        world.hardware(event)
    world.now += 600
    world.hardware(event)
    assert len(world.cluster.deleted_claims()) == 1
    # A new machine of the same name: the event is about the one before.
    world.cluster.add_node(node_object("node-3", created=world.now - 60))
    world.hardware(event)
    assert len(world.cluster.deleted_claims()) == 1


def test_the_end_of_an_alarm_and_other_alarms_say_nothing(world: HealthWorld) -> None:
    world.hardware(xid_event("node-3", at=world.now, state="OK"))
    other = xid_event("node-3", at=world.now)
    other["detail"]["alarmName"] = "chat-gpu-errors"
    world.hardware(other)
    world.hardware(xid_event("node-3", "31", at=world.now))
    world.hardware({"source": "aws.health", "detail-type": "x", "detail": {}})
    world.hardware({**xid_event("node-3", at=world.now), "detail": {"alarmName": 3}})
    assert list(world.store().cases(world.now)) == []


def test_of_a_batch_of_events_only_those_that_failed_come_again(world: HealthWorld) -> None:
    replacement(world)
    events = [xid_event("node-3", at=world.now - 30), xid_event("node-4", at=world.now - 30)]
    records = [
        {"messageId": str(number), "body": json.dumps(event), "eventSource": "aws:sqs"}
        for number, event in enumerate(events)
    ]
    made = world.cluster.on_claim_deleted

    def deleted(claim: str) -> None:
        made(claim)
        world.failing["DescribeAlarmContributors"] = ReadTimeoutError(endpoint_url="cloudwatch")

    world.cluster.on_claim_deleted = deleted
    answer = world.hardware({"Records": records})
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    assert world.state("node-3") == "done"


def test_one_node_of_a_pool_at_a_time(world: HealthWorld) -> None:
    world.cluster.pods_end = False
    for node in ("node-3", "node-4"):
        world.hardware(xid_event(node, at=world.now - 30))
    case = world.case("node-4")
    assert case is not None
    assert (world.state("node-3"), case.state, case.reason) == ("draining", "confirmed", "in_flight")


def test_the_hourly_cap_counts_the_whole_cell(world: HealthWorld) -> None:
    world.settings(replacementsPerHour=1)
    replacement(world)
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.hardware(xid_event("node-4", at=world.now - 30))
    case = world.case("node-4")
    assert case is not None
    assert (case.state, case.reason) == ("confirmed", "hourly_cap")
    world.now += 3700
    replacement(world, "node-newer")
    world.minute()
    assert world.state("node-4") == "done"


def test_a_second_dcgm_a_sticky_condition_and_an_old_one_replace_nothing(world: HealthWorld) -> None:
    def condition(node: str, reason: str, since: float) -> None:
        world.cluster.nodes[node]["status"]["conditions"].append(
            {
                "type": "AcceleratedHardwareReady",
                "status": "False",
                "reason": reason,
                "lastTransitionTime": node_object("x", created=since)["metadata"]["creationTimestamp"],
            }
        )

    condition("node-1", "DCGMError", world.now - 600)
    condition("node-2", "DCGMHealthCode101", world.now - 600)
    condition("node-3", "NvidiaXID79Error", world.now - 100_000)
    condition("node-4", "DCGMHealthCode101", world.now - 600)
    engines = [{"name": "engine", "image": "nvcr.io/nvidia/k8s/dcgm-exporter:4"}]
    for number in range(2):
        pod = pod_object(f"dcgm-{number}", "node-4", ready=world.now - 500)
        pod["metadata"]["labels"], pod["spec"]["containers"] = {}, engines
        world.cluster.pods[f"dcgm-{number}"] = pod
    world.cluster.samples.nodes["node-4"] = {"gpus": 0.0}
    world.minutes(5)
    assert world.cluster.acts == []
    sticky = world.case("node-2")
    assert sticky is not None
    assert (sticky.state, sticky.reason) == ("cleared", "sticky_condition")
    assert world.case("node-1") is None
    assert world.case("node-3") is None


def test_zero_gpus_that_are_reported_healthy_are_found(world: HealthWorld) -> None:
    replacement(world)
    world.cluster.samples.nodes["node-2"] = {"gpus": 0.0}
    world.minutes(4)
    assert world.state("node-2") == "done"


def test_the_gpus_of_another_platform_with_the_same_names_of_nodes_do_not_count(world: HealthWorld) -> None:
    """Red if a query selects nodes by name only: the node of seven GPUs reads 15, and is never found."""
    replacement(world)
    world.cluster.samples.nodes["node-2"] = {"gpus": 7.0}
    world.cluster.samples.neighbours = {"node-2": 8.0}
    world.minutes(4)
    assert world.state("node-2") == "done"


def test_a_gpu_that_stalls_dcgm_is_found_with_its_slow_worker(world: HealthWorld) -> None:
    replacement(world)
    del world.cluster.samples.nodes["node-2"]
    world.hardware(xid_event("node-2", "stalled", kind="dcgm", at=world.now - 30))
    assert world.state("node-2") == "suspected"
    report(world.cluster, world.now, minutes=10)
    for _ in range(2):
        world.now += 60
        report(world.cluster, world.now, slow={"worker-2": 0.5})
        world.minute()
    assert world.state("node-2") == "done"


def test_several_errors_in_turn_do_not_start_the_wait_again(world: HealthWorld) -> None:
    world.cluster.nodes["node-2"]["status"]["allocatable"]["nvidia.com/gpu"] = "7"
    for number in range(4):
        world.now += 60
        world.hardware(xid_event("node-2", str(100 + number), kind="dcgm", at=world.now))
        report(world.cluster, world.now)
        world.minute()
    assert any("claim-node-2" in act for act in world.cluster.deleted_claims())


def test_a_node_without_a_spare_place_is_told_once(world: HealthWorld) -> None:
    labels = world.cluster.nodes["node-3"]["metadata"]["labels"]
    labels["karpenter.sh/capacity-type"] = "reserved"
    labels["karpenter.k8s.aws/capacity-reservation-type"] = "capacity-block"
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.hardware(xid_event("node-3", "48", at=world.now - 20))
    world.minutes(2)
    assert (world.state("node-3"), world.cluster.acts) == ("refused", [])
    assert len(world.messages) == 1
    assert "node-3" in world.messages[0]["Subject"]


def test_a_cordon_of_somebody_else_is_left_alone(world: HealthWorld) -> None:
    world.cluster.nodes["node-3"]["spec"]["unschedulable"] = True
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.minutes(2)
    case = world.case("node-3")
    assert case is not None
    assert (case.reason, world.cluster.acts) == ("cordoned_by_others", [])


def test_evidence_from_before_a_reboot_counts_for_nothing(world: HealthWorld) -> None:
    world.settings(action="observe")
    world.hardware(xid_event("node-3", at=world.now - 30))
    status = world.cluster.nodes["node-3"]["status"]
    status["nodeInfo"]["bootID"] = "another"
    status["conditions"][0]["lastTransitionTime"] = node_object("x", created=world.now + 20)["metadata"][
        "creationTimestamp"
    ]
    world.minutes(1)
    case = world.case("node-3")
    assert case is not None
    assert (case.state, case.reason) == ("cleared", "older_than_boot")


def test_a_run_that_fails_writes_its_metrics_and_leaves_none_to_the_next(
    world: HealthWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    report(world.cluster, world.now, minutes=10)

    def fail(*_: object) -> None:
        raise OperationsError("the table is away")

    with monkeypatch.context() as broken:
        broken.setattr(minute, "_advance_all", fail)
        with pytest.raises(OperationsError):
            world.minute()
    world.minute()
    failed, whole = (json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line)
    for figures in (failed, whole):
        assert figures[health_names.WORKERS_COMPARED] == [8.0]
        assert figures[operations_names.METRIC_QUERIES][0] > 0
        assert len(figures[operations_names.METRIC_QUERIES]) == 1
        assert [figures[name] for name in ("platform", "cell")] == [PLATFORM, operations_names.MAIN_CELL]
    assert operations_names.RUNS not in failed
    assert whole[operations_names.RUNS] == [1.0]


def test_a_failed_event_counts_what_it_did(
    world: HealthWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")

    def fail(*_: object) -> None:
        raise OperationsError("the table is away")

    monkeypatch.setattr("gpu_health.case_progress.CaseProgress.advance", fail)
    with pytest.raises(OperationsError):
        world.hardware(xid_event("node-3", at=world.now - 30))
    (figures,) = (json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line)
    assert health_names.DECISION_SECONDS in figures
