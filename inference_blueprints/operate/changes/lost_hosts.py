"""Hosts of Auto Scaling groups on ECS that never joined their cluster.

The agent of hosts of earlier releases did not start. Such a host costs money and takes no task. It stays,
because it is protected and ECS does not know it, and its group counts it, so that no other host starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.changes.findings import Finding, Prepared
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.ecs.cluster_reading import hosts

CHECK = "lost hosts"
#: Time in which a host joins, with the pull of an engine's image.
_JOINS: Final = timedelta(minutes=45)
#: Most values of a filter (EC2 API Reference, DescribeInstances, Filters).
_FILTER_VALUES: Final = 200


def lost_hosts(change: PlatformChange) -> Iterator[Finding]:
    """End hosts that did not join in time. Hosts that start later have the new user data."""
    for stack in change.deployed.keys() & change.new.keys():
        cluster = change.ecs_cluster(stack)
        if cluster is None:
            continue
        groups = change.auto_scaling_groups(stack, change.deployed[stack]["Resources"])
        lost = _lost(change.account, cluster, groups) if groups else []
        if lost:
            message = f"ends hosts that did not join the cluster in {_JOINS}: {', '.join(lost)}"
            yield Prepared(CHECK, stack, message, partial(_end, change.account, lost))


def _lost(account: Account, cluster: str, groups: Sequence[str]) -> list[str]:
    with readable_errors():
        joined = {str(each["ec2InstanceId"]) for each in hosts(account, cluster) if "ec2InstanceId" in each}
        pages = (
            account.client("autoscaling")
            .get_paginator("describe_auto_scaling_groups")
            .paginate(AutoScalingGroupNames=list(groups))
        )
        others = [
            str(each["InstanceId"])
            for page in pages
            for group in page["AutoScalingGroups"]
            for each in group["Instances"]
            if each["InstanceId"] not in joined and each["LifecycleState"] == "InService"
        ]
        # A filter leaves out a host that has ended since; an identifier of one would be refused (EC2 API
        # Reference, error codes, InvalidInstanceID.NotFound).
        described = [
            reservation
            for start in range(0, len(others), _FILTER_VALUES)
            for reservation in account.client("ec2").describe_instances(
                Filters=[{"Name": "instance-id", "Values": others[start : start + _FILTER_VALUES]}]
            )["Reservations"]
        ]
        early = datetime.now(UTC) - _JOINS
        return sorted(
            str(instance["InstanceId"])
            for reservation in described
            for instance in reservation["Instances"]
            if instance["LaunchTime"] < early
        )


def _end(account: Account, lost: Sequence[str]) -> None:
    """End hosts, and let their groups start none in their place if they may be smaller."""
    client: Any = account.client("autoscaling")
    with readable_errors():
        for instance in lost:
            [found] = client.describe_auto_scaling_instances(InstanceIds=[instance])["AutoScalingInstances"]
            name = found["AutoScalingGroupName"]
            [group] = client.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
            client.terminate_instance_in_auto_scaling_group(
                InstanceId=instance,
                ShouldDecrementDesiredCapacity=group["DesiredCapacity"] > group["MinSize"],
            )
