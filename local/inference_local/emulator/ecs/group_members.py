"""The hosts of Auto Scaling groups, as Amazon EC2 Auto Scaling describes and terminates them.

Sources: ec2-auto-scaling-lifecycle.html (states), API TerminateInstanceInAutoScalingGroup,
managed-instance-draining.html (a lifecycle hook holds an instance in ``Terminating:Wait`` until its last task
has ended). The desired capacity stays when an instance is terminated in its group; managed scaling lowers it
when it removes one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ministack.services import autoscaling

from inference_local.emulator.ecs.control.cluster_state import EcsInstance, HostPool

_IN_SERVICE: Final = "InService"
_DRAINING: Final = "Terminating:Wait"


def group_of_pool(pool: HostPool) -> dict[str, Any] | None:
    """Return the Auto Scaling group of a pool. None of Managed Instances."""
    reference = pool.request.get("autoScalingGroupProvider", {}).get("autoScalingGroupArn", "")
    found: dict[str, Any] | None = autoscaling._asgs.get(
        reference.rpartition("autoScalingGroupName/")[2] or reference
    )
    return found


def join_group(instance: EcsInstance, pool: HostPool) -> None:
    """Let the group of a pool describe a host, once."""
    group = group_of_pool(pool)
    if group is None or any(each["InstanceId"] == instance.ec2_id for each in group["Instances"]):
        return
    group["Instances"].append(
        {
            "InstanceId": instance.ec2_id,
            "LifecycleState": _IN_SERVICE,
            "HealthStatus": "Healthy",
            "AvailabilityZone": instance.zone,
            "ProtectedFromScaleIn": group["NewInstancesProtectedFromScaleIn"],
            "LaunchTemplate": group.get("LaunchTemplate") or {},
            "LaunchConfigurationName": "",
        }
    )
    group["DesiredCapacity"] = max(group["DesiredCapacity"], _in_service(group))


def leave_group(ec2_id: str) -> None:
    """Let a group forget a host."""
    for group in autoscaling._asgs.values():
        for each in list(group["Instances"]):
            if each["InstanceId"] == ec2_id:
                group["Instances"].remove(each)
                if each["LifecycleState"] == _IN_SERVICE:
                    group["DesiredCapacity"] = max(group["MinSize"], group["DesiredCapacity"] - 1)


def register_termination(terminate: Callable[[str], None]) -> None:
    """Answer TerminateInstanceInAutoScalingGroup, which ministack does not have.

    terminate: Ends a host by the identifier of its EC2 instance.
    """

    def answer(parameters: dict[str, str]) -> Any:
        instance = parameters.get("InstanceId", "")
        members = [each for group in autoscaling._asgs.values() for each in group["Instances"]]
        found = next((each for each in members if each["InstanceId"] == instance), None)
        if found is None:
            return autoscaling._error(
                "ValidationError", f"Instance Id not found - No managed instance found for: {instance}"
            )
        if parameters.get("ShouldDecrementDesiredCapacity") != "false":
            return autoscaling._error(
                "ValidationError", "the stand-in keeps the desired capacity: ShouldDecrementDesiredCapacity"
            )
        found["LifecycleState"] = _DRAINING
        terminate(instance)
        return autoscaling._xml(
            200,
            "TerminateInstanceInAutoScalingGroupResponse",
            "<TerminateInstanceInAutoScalingGroupResult><Activity><StatusCode>InProgress</StatusCode>"
            "</Activity></TerminateInstanceInAutoScalingGroupResult>",
        )

    autoscaling._ACTION_MAP["TerminateInstanceInAutoScalingGroup"] = answer


def _in_service(group: dict[str, Any]) -> int:
    return sum(each["LifecycleState"] == _IN_SERVICE for each in group["Instances"])
