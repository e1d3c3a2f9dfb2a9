"""Many broken nodes at once: what holds replacements, who is told, and that small pools are repaired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ClientError

from gpu_health.cluster_repairs import ClusterRepairs
from inference_decisions.repairs.live_node import LiveNode, RepairActionError
from operations.kubernetes_api import KubernetesApi
from operations.operations_errors import MetricsError
from tests.runtime.gpu_health.fake_cluster import moment, node_object, pod_object
from tests.runtime.gpu_health.world import PREFIX, HealthWorld, xid_event


@pytest.fixture(autouse=True)
def few(world: HealthWorld) -> None:
    """The default of `maxUnhealthyPercent`: less than one of eight nodes."""
    world.settings(maxUnhealthyPercent=5)


def replaced_each(world: HealthWorld) -> None:
    """Let Karpenter replace every node whose NodeClaim is deleted."""

    def deleted(claim: str) -> None:
        name = claim.removeprefix("claim-")
        world.cluster.remove_node(name)
        world.cluster.add_node(
            node_object(f"new-{name}", created=world.now + 1),
            pod_object(f"pod-{name}", f"new-{name}", ready=world.now + 2),
        )

    world.cluster.on_claim_deleted = deleted


def contributors(world: HealthWorld, *nodes: str, code: str = "79", kind: str = "xid") -> None:
    """Let CloudWatch say that the alarm on XIDs is about some nodes."""
    world.answers["DescribeAlarms"] = {"MetricAlarms": [{"AlarmName": f"{PREFIX}{kind}"}]}
    world.answers["DescribeAlarmContributors"] = {
        "AlarmContributors": [
            {
                "ContributorId": node,
                "ContributorAttributes": {"node": node, "code": code},
                "StateReason": "",
                "StateTransitionedTimestamp": datetime.fromtimestamp(world.now - 30, UTC),
            }
            for node in nodes
        ]
    }


def test_two_broken_nodes_of_a_small_pool_are_replaced_one_after_the_other(world: HealthWorld) -> None:
    """Red if 5 % of eight nodes, which is less than one, holds the second for ever."""
    replaced_each(world)
    contributors(world, "node-3", "node-5")
    world.minutes(1)
    world.answers.pop("DescribeAlarms")
    world.minutes(1)
    assert [world.state(f"node-{number}") for number in (3, 5)] == ["done", "done"]
    assert world.messages == []


@pytest.mark.parametrize("arrival", ["event", "minute"])
def test_of_a_burst_none_is_touched_and_people_know_why_within_ten_minutes(
    world: HealthWorld, arrival: str
) -> None:
    """Red if the first of many is drained before the others count, or if nobody hears of the rest."""
    replaced_each(world)
    nodes = [f"node-{number}" for number in range(4)]
    contributors(world, *nodes)
    if arrival == "event":
        world.hardware(xid_event("node-2", at=world.now - 30))
    world.minutes(9)
    assert world.cluster.acts == []
    assert {world.case(node).reason for node in nodes} == {"too_many_unhealthy"}  # type: ignore[union-attr]
    (message,) = world.messages
    assert "pool h200" in message["Subject"]
    for node in nodes:
        assert f"{node}: confirmed, xid 79" in message["Message"]
    assert "docs/runbooks/replacements-held.md" in message["Message"]


def test_devices_that_are_lost_on_all_nodes_replace_none(world: HealthWorld) -> None:
    """Red if suspected nodes do not count: the first whose wait ended would be drained."""
    for node in world.cluster.nodes.values():
        node["status"]["allocatable"] = {"nvidia.com/gpu": "0"}
    world.minutes(5)
    assert world.cluster.acts == []


def test_people_are_told_of_each_hold_once(world: HealthWorld) -> None:
    """Red if a second incident within a day is silent, or one incident is told each minute."""
    nodes = [f"node-{number}" for number in range(4)]
    contributors(world, *nodes)
    world.minutes(8)
    assert len(world.messages) == 1
    world.answers.pop("DescribeAlarms")
    for node in nodes[1:]:  # Somebody replaces three of them.
        world.cluster.remove_node(node)
    world.freeze("health")
    world.minutes(11)
    world.freeze("none")
    contributors(world, *(f"node-{number}" for number in range(4, 8)))
    world.minutes(6)
    assert len(world.messages) == 2


def held_for_hours(world: HealthWorld, spoil: Callable[[int], None]) -> list[int]:
    """Let the breaker hold for a quarter of an hour and eleven hours more; return the minutes of messages."""
    told, minutes = [], [*range(1, 16), *range(75, 720, 240), 1470, 1471, 1472]
    began, before = world.now, len(world.messages)
    for minute in minutes:
        spoil(minute)
        world.now = began + 60 * (minute - 1)
        world.minutes(1)
        told += [minute] * (len(world.messages) - before)
        before = len(world.messages)
    return told


@pytest.mark.parametrize("trouble", ["unreadable", "frozen"])
def test_a_held_breaker_is_never_silent_for_ten_minutes(
    world: HealthWorld, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """Red if a minute with another reason, such as a node that could not be read, begins the hold anew."""
    nodes = ("node-1", "node-2", "node-3")
    contributors(world, *nodes)
    read = ClusterRepairs.read_live

    def unreadable(repairs: ClusterRepairs, node: str) -> LiveNode | None:
        raise RepairActionError("the API server is busy")

    def spoil(minute: int) -> None:
        # Two minutes of three go wrong; frozen is the first hour.
        wrong = minute % 3 != 0
        if trouble == "unreadable":
            monkeypatch.setattr(ClusterRepairs, "read_live", unreadable if wrong else read)
        if trouble == "frozen":
            world.freeze("health" if minute < 4 else "none")

    first, *later = held_for_hours(world, spoil)
    assert first <= 10 + (3 if trouble == "frozen" else 0)
    # And once a day, while it lasts.
    assert len(later) == 1
    assert later[0] >= 1440
    assert world.cluster.acts == []


def test_a_message_that_could_not_be_sent_is_sent_by_the_next_run(world: HealthWorld) -> None:
    """Red if a run that could not tell people counts as one that did, or hides that it failed."""
    contributors(world, *(f"node-{number}" for number in range(4)))
    world.minutes(4)
    world.failing["Publish"] = ClientError({"Error": {"Code": "KMSAccessDenied", "Message": "no"}}, "Publish")
    for _ in range(2):
        with pytest.raises(RepairActionError, match="tell people"):
            world.minutes(1)
    world.failing.clear()
    world.minutes(1)
    assert len(world.messages) == 1


def test_a_drain_that_does_not_end_is_left_to_people_and_the_pool_goes_on(world: HealthWorld) -> None:
    """Red if a node that was given up counts as in flight until somebody comes."""
    replaced_each(world)
    world.cluster.pods_end = False
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.minutes(17)
    assert (world.state("node-3"), len(world.messages)) == ("gave_up", 1)
    assert "15" not in world.messages[0]["Subject"]
    assert world.cluster.cordoned() == ["node-3"]
    world.cluster.pods_end = True
    world.hardware(xid_event("node-5", at=world.now - 30))
    world.minutes(1)
    assert world.state("node-5") == "done"


def test_a_drain_that_was_frozen_has_its_whole_time_afterwards(world: HealthWorld) -> None:
    """Red if the time of a freeze counts: the drain would be given up without having been tried again."""
    world.cluster.pods_end = False
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.freeze("health")
    world.minutes(1)
    world.now += 3600
    world.freeze("none")
    world.minutes(5)
    assert world.state("node-3") == "draining"


def test_a_node_that_was_left_to_people_is_looked_at_again_after_an_hour(world: HealthWorld) -> None:
    """Red if a node that people gave back breaks again within a day and nobody looks."""
    replaced_each(world)
    labels = world.cluster.nodes["node-3"]["metadata"]["labels"]
    labels |= {
        "karpenter.sh/capacity-type": "reserved",
        "karpenter.k8s.aws/capacity-reservation-type": "default",
    }
    world.hardware(xid_event("node-3", at=world.now - 30))
    assert world.state("node-3") == "refused"
    world.hardware(xid_event("node-3", at=world.now + 60))
    assert world.state("node-3") == "refused"
    labels["karpenter.k8s.aws/capacity-reservation-id"] = "cr-1"
    world.answers["DescribeCapacityReservations"] = {
        "CapacityReservations": [{"State": "active", "AvailableInstanceCount": 1}]
    }
    world.now += 3700
    world.hardware(xid_event("node-3", at=world.now - 30))
    assert world.state("node-3") == "done"


def test_pods_that_a_dead_kubelet_leaves_behind_do_not_hold_a_drain(world: HealthWorld) -> None:
    """Red if a pod that should have ended long ago counts as serving: a finalizer or a volume keeps it."""
    replaced_each(world)
    world.cluster.pods_end = False
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.cluster.pods["worker-3"]["metadata"]["deletionTimestamp"] = moment(world.now + 90)
    world.minutes(2)
    assert world.state("node-3") == "draining"
    world.minutes(1)
    assert world.state("node-3") == "done"


def test_a_minute_lists_the_nodes_once(world: HealthWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red if each node in alarm lists all nodes: with a hundred of a thousand, Lambda ended the function."""
    for number in range(8, 40):
        world.cluster.add_node(node_object(f"node-{number}", created=world.now - 86400))
    contributors(world, *(f"node-{number}" for number in range(8, 18)), code="94")
    asked: list[str] = []
    plain: Any = KubernetesApi._ask

    def ask(self: KubernetesApi, method: str, path: str, *arguments: Any, **named: Any) -> Any:
        asked.append(f"{method} {path.partition('?')[0]}")
        return plain(self, method, path, *arguments, **named)

    monkeypatch.setattr(KubernetesApi, "_ask", ask)
    queries = world.cluster.queries
    world.minutes(1)
    assert asked.count("GET /api/v1/nodes") == 1
    assert not [each for each in asked if each.startswith("GET /api/v1/nodes/")]
    # Windows of six series, GPUs of all nodes, and one for the exporters of all suspected nodes.
    assert world.cluster.queries - queries <= 8


#: Of the capacity shift, each minute: two lists, and a queue of each of two pools
#: (`test_a_run_reads_all_roles_with_two_lists`).
SHIFT_READS = 4


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "code"), [("xid", "79"), ("dcgm", "exporter")])
def test_a_hundred_of_a_thousand_nodes_in_alarm_cost_twenty_requests(
    world: HealthWorld, monkeypatch: pytest.MonkeyPatch, kind: str, code: str
) -> None:
    """Red if nodes in alarm are read one by one: that took 101 lists, 201 lists of pods and 300 reads."""
    for number in range(8, 1000):
        name = f"node-{number}"
        pods = [pod_object(f"{name}-{place}", name, ready=world.now - 80000) for place in range(16)]
        for other in pods[8:]:
            other["metadata"]["labels"] = {}
        world.cluster.add_node(node_object(name, created=world.now - 86400), *pods)
    contributors(world, *(f"node-{number}" for number in range(300, 400)), code=code, kind=kind)
    asked: Counter[str] = Counter()
    plain: Any = KubernetesApi._ask

    def ask(self: KubernetesApi, method: str, path: str, *arguments: Any, **named: Any) -> Any:
        asked[f"{method} {path.partition('?')[0]}"] += 1
        return plain(self, method, path, *arguments, **named)

    def late(*_: object) -> NoReturn:
        raise MetricsError("CloudWatch is late")

    monkeypatch.setattr(KubernetesApi, "_ask", ask)
    monkeypatch.setattr("gpu_health.minute.read_windows", late)
    # EventBridge brings each contributor by itself.
    for number in range(300, 400):
        world.hardware(xid_event(f"node-{number}", code, at=world.now - 30, kind=kind))
    assert asked == {"GET /api/v1/nodes": 1}
    world.minutes(1)
    assert asked["GET /api/v1/nodes"] == 2
    assert sum(asked.values()) + SHIFT_READS <= 20, asked
    assert len([*world.store().cases(world.now)]) == 100
    assert world.cluster.acts == []
