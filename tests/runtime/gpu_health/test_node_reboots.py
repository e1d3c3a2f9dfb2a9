"""Nodes are rebooted before they are replaced: once, whatever dies or comes late."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.runtime.gpu_health.fake_cluster import moment
from tests.runtime.gpu_health.test_handlers import replacement
from tests.runtime.gpu_health.test_owner_faults import places, reserved_node
from tests.runtime.gpu_health.world import HealthWorld, populate, report, xid_event

REBOOT = "RebootInstances"
#: GPU stopped processing: NVIDIA resets it, and EKS managed node groups reboot.
CLEARED_BY_REBOOT = "46"


@pytest.fixture
def reboots(world: HealthWorld) -> list[Any]:
    """Instances that were rebooted. The first reboot of a day is allowed."""
    world.settings(rebootsPerNodePerDay=1)
    return answered(world)


def answered(world: HealthWorld) -> list[Any]:
    """Let EC2 take reboots, and return the instances."""
    asked: list[Any] = []

    class Answer(dict[str, Any]):
        def __contains__(self, operation: object) -> bool:
            return super().__contains__(operation) or operation == REBOOT

        def __getitem__(self, operation: str) -> Any:
            if operation != REBOOT:
                return super().__getitem__(operation)
            asked.append(operation)
            world.calls.count(operation)
            return {}

    world.answers = Answer(world.answers)
    return asked


def fault(world: HealthWorld, code: str = CLEARED_BY_REBOOT) -> dict[str, Any]:
    return xid_event("node-3", code, at=world.now - 30)


def boot(world: HealthWorld, name: str = "node-3") -> None:
    """Let a node come back from its boot, with its worker."""
    status = world.cluster.nodes[name]["status"]
    status["nodeInfo"]["bootID"] = f"boot-of-{world.now}"
    status["conditions"][0]["lastTransitionTime"] = moment(world.now)


def test_a_fault_that_a_reboot_clears_gets_a_reboot_and_then_a_replacement(
    world: HealthWorld, reboots: list[Any]
) -> None:
    """Red if the node is replaced at once, rebooted each minute, or rebooted again on the same day."""
    replacement(world)
    world.hardware(fault(world))
    world.minutes(2)
    assert (world.state("node-3"), len(reboots), world.cluster.cordoned()) == ("rebooting", 1, ["node-3"])
    boot(world)
    world.minutes(1)
    assert (world.state("node-3"), world.cluster.cordoned(), world.messages) == ("done", [], [])
    assert world.store().reboots("uid-node-3", world.now) == 1
    # The alarm of the same fault comes again, and late. Then another fault.
    world.hardware(fault(world))
    assert (world.state("node-3"), world.cluster.deleted_claims()) == ("done", [])
    world.now += 600
    report(world.cluster, world.now)
    world.hardware(fault(world))
    assert (len(reboots), len(world.cluster.deleted_claims())) == (1, 1)


def test_a_fault_of_dead_hardware_gets_no_reboot(world: HealthWorld, reboots: list[Any]) -> None:
    """Red if the table is not asked."""
    replacement(world)
    world.hardware(fault(world, "79"))
    assert (reboots, len(world.cluster.deleted_claims())) == ([], 1)


@pytest.mark.parametrize(("code", "count", "told"), [(CLEARED_BY_REBOOT, 1, 0), ("79", 0, 1)])
def test_a_full_reservation_gets_a_reboot_or_a_message(
    world: HealthWorld, reboots: list[Any], code: str, count: int, told: int
) -> None:
    """Red if nothing is done about a broken node of a full reservation, or its place is given away."""
    reserved_node(world)
    places(world, 0)
    world.hardware(fault(world, code))
    assert (len(reboots), len(world.messages), world.cluster.deleted_claims()) == (count, told, [])


def test_a_reboot_that_ec2_refuses_becomes_a_replacement(world: HealthWorld, reboots: list[Any]) -> None:
    """Red if a missing permission leaves a closed node, or the refused calls have no end."""
    replacement(world)
    refused = {"Error": {"Code": "UnauthorizedOperation", "Message": "You are not authorized"}}
    world.failing[REBOOT] = ClientError(refused, REBOOT)
    world.hardware(fault(world))
    world.minutes(6)
    assert (reboots, len(world.cluster.deleted_claims()), world.cluster.cordoned()) == ([], 1, [])


def test_an_instance_that_is_unknown_is_refused_as_ec2_does(world: HealthWorld) -> None:
    """Red if the function takes the refusal for a reboot. The emulated EC2 refuses, as EC2 does."""
    world.settings(rebootsPerNodePerDay=1)
    world.hardware(fault(world))
    case = world.case("node-3")
    assert case is not None
    assert (case.state, case.reason, case.attempts) == ("rebooting", "act_failed", 1)


@pytest.mark.parametrize(
    "last",
    [1, 6, 11, *(pytest.param(each, marks=pytest.mark.thorough) for each in (2, 3, 4, 5, 7, 8, 9, 10, 12))],
)
def test_killed_after_every_call_a_reboot_is_resumed(
    world: HealthWorld, reboots: list[Any], last: int
) -> None:
    """Red if a run that dies between two steps leaves a closed node, or counts its reboot twice."""
    with world.killed_after(last) as calls:
        world.hardware(fault(world))
    world.minutes(1)
    assert world.state("node-3") == "rebooting", calls.made
    boot(world)
    # Any call of the end dies too.
    world.now += 60
    with world.killed_after(max(1, last - 8)):
        world.minute()
    world.minutes(2)
    assert (world.state("node-3"), world.cluster.cordoned()) == ("done", [])
    assert 1 <= len(reboots) <= 2
    assert world.store().reboots("uid-node-3", world.now) == 1
    assert not world.store().places(world.now)[0].get("h200")
    assert world.cluster.deleted_claims() == []


def test_two_nodes_at_once_where_the_share_allows_it(world: HealthWorld, reboots: list[Any]) -> None:
    """Red if the key has no effect on the places of a pool, or the default is more than one."""
    world.cluster.nodes.clear()
    populate(world.cluster, world.now, nodes=8)
    world.settings(rebootsPerNodePerDay=1, maxRepairingPercent=25)
    for number in (1, 3, 5):
        world.hardware(xid_event(f"node-{number}", CLEARED_BY_REBOOT, at=world.now - 30))
    assert (world.cluster.cordoned(), len(reboots)) == (["node-1", "node-3"], 2)
