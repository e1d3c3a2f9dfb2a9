"""EC2, Auto Scaling and SNS fail one call at a time: a replacement waits, goes on, and happens once."""

from __future__ import annotations

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.runtime.gpu_health.fake_cluster import node_object, pod_object
from tests.runtime.gpu_health.test_handlers import replacement
from tests.runtime.gpu_health.test_owners_and_alarms import group_of_one
from tests.runtime.gpu_health.world import HealthWorld, xid_event

ERRORS = {
    "throttled": ClientError({"Error": {"Code": "Throttling", "Message": "Rate exceeded"}}, "any"),
    "failing": ClientError({"Error": {"Code": "InternalFailure", "Message": "try again"}}, "any"),
    "timing out": ReadTimeoutError(endpoint_url="https://aws"),
}
#: One way of failing for every commit, all of them in continuous integration.
WAYS = [name if name == "throttled" else pytest.param(name, marks=pytest.mark.thorough) for name in ERRORS]
RESERVATION = "DescribeCapacityReservations"
TERMINATION = "TerminateInstanceInAutoScalingGroup"


@pytest.fixture(params=WAYS)
def error(request: pytest.FixtureRequest) -> Exception:
    """How a call fails."""
    found: Exception = ERRORS[request.param]
    return found


@pytest.fixture
def instance(world: HealthWorld) -> str:
    """The instance of a node of an Auto Scaling group, whose worker ends as soon as it is asked."""
    found = group_of_one()
    labels = {"eks.amazonaws.com/nodegroup": "gpus", "eks.amazonaws.com/capacityType": "ON_DEMAND"}
    node = node_object("node-asg", created=world.now - 9000, owner=None, labels=labels)
    node["spec"]["providerID"] = f"aws:///us-west-2a/{found}"
    world.cluster.add_node(node, pod_object("pod-asg", "node-asg", ready=world.now - 8000))
    return found


def reserved_node(world: HealthWorld) -> None:
    """Let a node come from a reservation."""
    world.cluster.nodes["node-3"]["metadata"]["labels"] |= {
        "karpenter.sh/capacity-type": "reserved",
        "karpenter.k8s.aws/capacity-reservation-type": "default",
        "karpenter.k8s.aws/capacity-reservation-id": "cr-1",
    }


def places(world: HealthWorld, count: int) -> None:
    """Let EC2 tell how many places the reservation has left."""
    found = {"State": "active", "AvailableInstanceCount": count}
    world.answers[RESERVATION] = {"CapacityReservations": [found]}


def replaced_by_its_group(world: HealthWorld, instance: str) -> None:
    """Check that the group replaced the instance once, and let the new node serve."""
    assert world.calls.made.count(TERMINATION) == 1
    group = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"][0]
    assert (group["DesiredCapacity"], len(group["Instances"])) == (1, 1)
    assert group["Instances"][0]["InstanceId"] != instance
    world.cluster.remove_node("node-asg")
    world.cluster.add_node(
        node_object("node-new", created=world.now), pod_object("pod-new", "node-new", ready=world.now)
    )
    world.minutes(1)
    assert (world.state("node-asg"), world.messages) == ("done", [])


@pytest.mark.parametrize("operation", ["DescribeAutoScalingInstances", TERMINATION])
def test_auto_scaling_that_fails_for_a_while_delays_a_replacement(
    world: HealthWorld, instance: str, operation: str, error: Exception
) -> None:
    world.failing[operation] = error
    world.hardware(xid_event("node-asg", at=world.now - 30))
    world.minutes(2)
    assert TERMINATION not in world.calls.made
    world.failing.clear()
    world.minutes(2)
    replaced_by_its_group(world, instance)


def test_a_termination_whose_answer_is_lost_is_not_asked_for_twice(
    world: HealthWorld, instance: str, error: Exception
) -> None:
    """The group has forgotten the instance, and Kubernetes still has the node for a while."""
    world.lost[TERMINATION] = error
    world.hardware(xid_event("node-asg", at=world.now - 30))
    world.lost.clear()
    world.minutes(8)
    assert world.state("node-asg") == "replacing"
    replaced_by_its_group(world, instance)


def test_a_stale_list_of_instances_terminates_no_other_one(world: HealthWorld, instance: str) -> None:
    """The list still has the instance in service after it was terminated, so it is asked for again."""
    stale = boto3.client("autoscaling").describe_auto_scaling_instances(InstanceIds=[instance])
    world.answers["DescribeAutoScalingInstances"] = stale
    world.lost[TERMINATION] = ERRORS["throttled"]
    world.hardware(xid_event("node-asg", at=world.now - 30))
    # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
    refused = {"Error": {"Code": "ValidationError", "Message": "Instance Id not found"}}
    world.failing[TERMINATION] = ClientError(refused, TERMINATION)
    world.minutes(2)
    assert (world.state("node-asg"), world.messages) == ("draining", [])
    world.lost.clear()
    world.failing.clear()
    del world.answers["DescribeAutoScalingInstances"]
    world.minutes(1)
    replaced_by_its_group(world, instance)


def test_a_reservation_that_cannot_be_read_delays_a_replacement(world: HealthWorld, error: Exception) -> None:
    reserved_node(world)
    replacement(world)
    world.failing[RESERVATION] = error
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.minutes(6)
    assert (world.state("node-3"), world.cluster.acts, world.messages) == ("suspected", [], [])
    world.failing.clear()
    places(world, 1)
    world.minutes(1)
    assert (world.state("node-3"), len(world.cluster.deleted_claims())) == ("done", 1)


def test_a_reservation_that_is_lost_while_its_node_drains_delays_the_rest(
    world: HealthWorld, error: Exception
) -> None:
    reserved_node(world)
    replacement(world)
    places(world, 1)
    world.cluster.pods_end = False
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.failing[RESERVATION] = error
    world.cluster.pods.pop("worker-3")
    world.minutes(2)
    assert (world.state("node-3"), world.cluster.deleted_claims()) == ("draining", [])
    world.failing.clear()
    world.minutes(1)
    assert (world.state("node-3"), len(world.cluster.deleted_claims())) == ("done", 1)


def test_a_stale_answer_about_a_reservation_costs_one_node_and_people_are_told(world: HealthWorld) -> None:
    """EC2 still tells of a place that somebody took. The new node never comes."""
    reserved_node(world)
    places(world, 1)
    world.cluster.on_claim_deleted = lambda claim: world.cluster.remove_node(claim.removeprefix("claim-"))
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.hardware(xid_event("node-4", at=world.now - 30))
    world.minutes(5)
    assert (world.state("node-3"), world.state("node-4")) == ("verifying", "confirmed")
    world.minutes(28)
    assert (world.state("node-3"), len(world.messages)) == ("gave_up", 1)
    assert "no replacement serves" in world.messages[0]["Message"]


def test_people_are_told_in_the_end_and_other_nodes_do_not_wait_for_that(
    world: HealthWorld, error: Exception
) -> None:
    world.cluster.add_node(node_object("node-alone", created=world.now - 9000, owner=None))
    replacement(world)
    world.failing["Publish"] = error
    world.hardware(xid_event("node-alone", at=world.now - 30))
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.minutes(8)
    assert (world.state("node-alone"), world.state("node-3")) == ("confirmed", "done")
    world.failing.clear()
    world.minutes(3)
    assert (world.state("node-alone"), len(world.messages)) == ("refused", 1)


def test_a_message_whose_answer_is_lost_comes_again_and_then_no_more(
    world: HealthWorld, error: Exception
) -> None:
    world.cluster.add_node(node_object("node-alone", created=world.now - 9000, owner=None))
    world.lost["Publish"] = error
    world.hardware(xid_event("node-alone", at=world.now - 30))
    world.lost.clear()
    world.minutes(3)
    assert (world.state("node-alone"), len(world.messages)) == ("refused", 2)
