"""A host is marked, drained, terminated in its Auto Scaling group and replaced, through boto3."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.ecs.running_cluster import CLUSTER, RunningCluster, eventually, identifier
from tests.local.ecs.test_running_tasks import WAITS

_MARK = "inference-blueprints.gpu-health"


def members(cluster: RunningCluster) -> tuple[int, dict[str, str]]:
    """Return the desired capacity of the group, and the state of each instance."""
    groups = cluster.emulator.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    [group] = [each for each in groups if each["AutoScalingGroupName"] == "gpu"]
    return group["DesiredCapacity"], {
        each["InstanceId"]: each["LifecycleState"] for each in group["Instances"]
    }


def described(cluster: RunningCluster, host: str) -> dict[str, Any]:
    [found] = cluster.ecs.describe_container_instances(cluster=CLUSTER, containerInstances=[host])[
        "containerInstances"
    ]
    return dict(found)


def test_a_host_that_is_terminated_in_its_group_is_replaced(cluster: RunningCluster) -> None:
    # managed-instance-draining.html, API TerminateInstanceInAutoScalingGroup, API PutAttributes.
    cluster.create("replaced", cluster.register("replaced", WAITS))
    [task] = cluster.running("replaced", 1)
    host = identifier(task["containerInstanceArn"])
    instance = described(cluster, host)["ec2InstanceId"]
    desired, before = eventually(
        lambda: members(cluster) if instance in members(cluster)[1] else None, "member"
    )
    assert before[instance] == "InService"
    mark = {"name": _MARK, "targetType": "container-instance", "targetId": host}
    cluster.ecs.put_attributes(cluster=CLUSTER, attributes=[{**mark, "value": "1 2 gpus_missing x open"}])
    attributes = {each["name"]: each.get("value") for each in described(cluster, host)["attributes"]}
    assert attributes[_MARK] == "1 2 gpus_missing x open"
    cluster.ecs.update_container_instances_state(
        cluster=CLUSTER, containerInstances=[host], status="DRAINING"
    )
    other = eventually(
        lambda: [each for each in cluster.running("replaced", 1) if each["taskArn"] != task["taskArn"]],
        "task",
    )
    assert identifier(other[0]["containerInstanceArn"]) != host
    cluster.ecs.delete_attributes(cluster=CLUSTER, attributes=[mark])
    assert _MARK not in {each["name"] for each in described(cluster, host)["attributes"]}
    cluster.emulator.client("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=instance, ShouldDecrementDesiredCapacity=False
    )
    eventually(lambda: instance not in members(cluster)[1], "end of the host")
    wanted, after = eventually(
        lambda: found if len((found := members(cluster))[1]) >= found[0] else None,
        "replacement",
    )
    assert wanted >= desired
    assert set(after.values()) == {"InService"}
    cluster.delete("replaced")


def test_what_is_no_host_gets_no_attribute_and_is_not_terminated(cluster: RunningCluster) -> None:
    attribute = {"name": _MARK, "targetType": "container-instance", "targetId": "absent"}
    with pytest.raises(ClientError, match="TargetNotFoundException"):
        cluster.ecs.put_attributes(cluster=CLUSTER, attributes=[attribute])
    with pytest.raises(ClientError, match="No managed instance found"):
        cluster.emulator.client("autoscaling").terminate_instance_in_auto_scaling_group(
            InstanceId="i-absent", ShouldDecrementDesiredCapacity=False
        )
