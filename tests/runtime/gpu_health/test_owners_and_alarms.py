"""Nodes of Auto Scaling groups, and alarms whose event names no node or was lost."""

from __future__ import annotations

import copy
from datetime import UTC, datetime

import boto3
import pytest

from inference_contracts.health_names import CONTRIBUTOR_EVENT
from tests.runtime.gpu_health.fake_cluster import node_object, pod_object
from tests.runtime.gpu_health.test_handlers import replacement
from tests.runtime.gpu_health.world import PREFIX, HealthWorld, xid_event
from tests.runtime.operations.fresh_process import REGION


def group_of_one() -> str:
    """Make an Auto Scaling group, and return its instance."""
    ec2, scaling = boto3.client("ec2"), boto3.client("autoscaling")
    image = ec2.register_image(Name="gpu")["ImageId"]
    scaling.create_launch_configuration(
        LaunchConfigurationName="gpu", ImageId=image, InstanceType="p5en.48xlarge"
    )
    scaling.create_auto_scaling_group(
        AutoScalingGroupName="gpus",
        LaunchConfigurationName="gpu",
        MinSize=1,
        MaxSize=2,
        DesiredCapacity=1,
        AvailabilityZones=[f"{REGION}a"],
    )
    group = scaling.describe_auto_scaling_groups()["AutoScalingGroups"][0]
    return str(group["Instances"][0]["InstanceId"])


def test_a_node_of_a_group_is_terminated_and_the_group_keeps_its_size(world: HealthWorld) -> None:
    instance = group_of_one()
    node = node_object(
        "node-asg",
        created=world.now - 9000,
        owner=None,
        labels={"eks.amazonaws.com/nodegroup": "gpus", "eks.amazonaws.com/capacityType": "ON_DEMAND"},
    )
    node["spec"]["providerID"] = f"aws:///us-west-2a/{instance}"
    world.cluster.add_node(node, pod_object("pod-asg", "node-asg", ready=world.now - 8000))
    event = xid_event("node-asg", at=world.now - 30)
    world.hardware(event)
    assert world.state("node-asg") == "replacing"
    world.minutes(1)
    world.cluster.remove_node("node-asg")
    world.cluster.add_node(
        node_object("node-new", created=world.now), pod_object("pod-new", "node-new", ready=world.now)
    )
    world.minutes(1)
    group = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"][0]
    assert (group["DesiredCapacity"], len(group["Instances"])) == (1, 1)
    assert group["Instances"][0]["InstanceId"] != instance
    case = world.case("node-asg")
    assert case is not None
    assert (case.state, case.instance, case.owner_name) == ("done", instance, "gpus")


def test_a_node_that_nothing_owns_is_told(world: HealthWorld) -> None:
    world.cluster.add_node(node_object("node-alone", created=world.now - 9000, owner=None))
    world.hardware(xid_event("node-alone", at=world.now - 30))
    case = world.case("node-alone")
    assert case is not None
    assert (case.state, case.reason, len(world.messages)) == ("refused", "no_owner", 1)


def test_an_event_of_an_alarm_about_many_nodes_asks_which(world: HealthWorld) -> None:
    replacement(world)
    world.answers["DescribeAlarmContributors"] = {
        "AlarmContributors": [
            {
                "ContributorId": "1",
                "ContributorAttributes": {"node": "node-3", "code": "79"},
                "StateReason": "",
                "StateTransitionedTimestamp": datetime.fromtimestamp(world.now - 30, UTC),
            }
        ]
    }
    event = copy.deepcopy(xid_event("node-3", at=world.now - 30))
    event["detail-type"] = "CloudWatch Alarm State Change"
    del event["detail"]["alarmContributor"]
    world.hardware(event)
    assert world.state("node-3") == "done"


def test_an_event_that_was_lost_is_made_up_for_within_a_minute(world: HealthWorld) -> None:
    replacement(world)
    world.answers["DescribeAlarms"] = {"MetricAlarms": [{"AlarmName": f"{PREFIX}xid"}]}
    world.answers["DescribeAlarmContributors"] = {
        "AlarmContributors": [
            {
                "ContributorId": "1",
                "ContributorAttributes": {"InstanceId": "i-node-3", "code": "79"},
                "StateReason": "",
            }
        ]
    }
    world.minutes(2)
    assert (world.state("node-3"), len(world.cluster.deleted_claims())) == ("done", 1)


def test_a_plain_metric_alarm_names_its_node_by_a_dimension(world: HealthWorld) -> None:
    replacement(world)
    event = copy.deepcopy(xid_event("node-3", at=world.now - 30))
    assert event["detail-type"] == CONTRIBUTOR_EVENT
    event["detail-type"] = "CloudWatch Alarm State Change"
    del event["detail"]["alarmContributor"]
    dimensions = {"NodeName": "node-3", "code": "79"}
    metric = {"dimensions": dimensions, "name": "Xid", "namespace": "Hardware"}
    event["detail"]["configuration"]["metrics"] = [{"id": "m", "metricStat": {"metric": metric}}]
    world.hardware(event)
    assert world.state("node-3") == "done"


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_refused_is_made_anew(world: HealthWorld, status: int) -> None:
    replacement(world)
    world.cluster.failing["GET /api/v1/nodes"] = status
    with pytest.raises(Exception, match="told to fail"):
        world.hardware(xid_event("node-3", at=world.now - 30))
    world.cluster.failing.clear()
    world.hardware(xid_event("node-3", at=world.now - 30))
    assert world.state("node-3") == "done"
