"""Ends the tasks of a cluster before its stacks are deleted, so that streams end and hosts may go."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.ecs.cluster_reading import cluster_exists, serves, services
from inference_contracts.errors import UserError

_POLL_SECONDS = 10.0
#: Time in which hosts start, after which their protection can be changed.
_HOST_PATIENCE_SECONDS = 600.0
#: Instances of one call, and the states in which they can be changed (API_SetInstanceProtection of Amazon EC2
#: Auto Scaling; the states are in the words of its refusal, guardian/riff-raff#510).
_MAXIMUM_HOSTS: Final = 50
_CHANGEABLE: Final = ("InService", "EnteringStandby", "Standby")


def end_services(
    account: Account, platform: str, *, patience_seconds: float, say: Callable[[str], None]
) -> None:
    """Set the services of models to no task, and wait until their tasks have drained.

    Their range is set to nothing first, because Application Auto Scaling would start tasks again. The
    discovery store and the metrics stay until their stacks are deleted: workers that drain need the store.

    platform: Name of the platform, and of its cluster.
    patience_seconds: How long tasks may drain. Deleting the stack then stops them.
    say: Called with each line for the user.
    """
    if not cluster_exists(account, platform):
        return
    found = [each for each in services(account, platform) if serves(each)]
    names = [str(each["serviceName"]) for each in found]
    if not names:
        return
    _end_scaling(account, [f"service/{platform}/{name}" for name in names])
    client = account.client("ecs")
    for service in found:
        # A daemon has no number of tasks.
        if service.get("schedulingStrategy", "REPLICA") == "REPLICA" and service["desiredCount"]:
            client.update_service(cluster=platform, service=service["serviceName"], desiredCount=0)
    say(f"{len(names)} services of models are set to no task; their streams end first")
    deadline = time.monotonic() + patience_seconds
    while left := [
        str(each["serviceName"])
        for each in services(account, platform)
        if serves(each) and each["runningCount"]
    ]:
        if time.monotonic() > deadline:
            say(f"services whose tasks did not end in time: {', '.join(left)}")
            return
        time.sleep(_POLL_SECONDS)


def _end_scaling(account: Account, resources: list[str]) -> None:
    """Set the range of scaled services to nothing, so that nothing scales them out again.

    https://docs.aws.amazon.com/autoscaling/application/APIReference/API_RegisterScalableTarget.html: an
    existing target is updated; a scheduled action could still set a smallest number, so it is suspended.
    """
    client = account.client("application-autoscaling")
    pages = client.get_paginator("describe_scalable_targets").paginate(ServiceNamespace="ecs")
    targets = [
        target for page in pages for target in page["ScalableTargets"] if target["ResourceId"] in resources
    ]
    for target in targets:
        client.register_scalable_target(
            ServiceNamespace="ecs",
            ResourceId=target["ResourceId"],
            ScalableDimension=target["ScalableDimension"],
            MinCapacity=0,
            MaxCapacity=0,
            SuspendedState={
                "DynamicScalingInSuspended": True,
                "DynamicScalingOutSuspended": True,
                "ScheduledScalingSuspended": True,
            },
        )


def unprotect_hosts(account: Account, platform: str, *, tag: str) -> None:
    """Take scale-in protection from the hosts of a platform's Auto Scaling groups.

    Managed termination protection sets it on each host
    (https://docs.aws.amazon.com/AmazonECS/latest/developerguide/managed-termination-protection.html), and a
    group with protected hosts cannot be emptied, so CloudFormation would wait for it until it gives up.

    tag: Key of the tag of its resources.
    """
    client = account.client("autoscaling")
    filters = [{"Name": f"tag:{tag}", "Values": [platform]}]
    pages = client.get_paginator("describe_auto_scaling_groups").paginate(Filters=filters)
    unprotect_groups(
        account, [group["AutoScalingGroupName"] for page in pages for group in page["AutoScalingGroups"]]
    )


def unprotect_groups(account: Account, names: Sequence[str]) -> None:
    """Take scale-in protection from the hosts of some Auto Scaling groups, see `unprotect_hosts`.

    Raises UserError if hosts stay protected.
    """
    client = account.client("autoscaling")
    for name in names:
        client.update_auto_scaling_group(
            AutoScalingGroupName=name, MinSize=0, NewInstancesProtectedFromScaleIn=False
        )
        deadline = time.monotonic() + _HOST_PATIENCE_SECONDS
        while left := _still_protected(client, name):
            if time.monotonic() > deadline:
                raise UserError(
                    f"hosts of Auto Scaling group {name} stay protected from scale-in: {', '.join(left)}; "
                    "remove their protection, or terminate them, and try again"
                )
            time.sleep(_POLL_SECONDS)


def _still_protected(client: Any, name: str) -> list[str]:
    """Take protection from the hosts that may be changed, and return those to try again.

    A host that starts is changed later. One that ends needs no change. If it ends after the question, it
    fails the call for all (guardian/riff-raff#510, hashicorp/terraform-provider-aws#35071).
    """
    groups = client.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    states = {
        each["InstanceId"]: str(each["LifecycleState"])
        for group in groups
        for each in group["Instances"]
        if each["ProtectedFromScaleIn"]
    }
    ready = [each for each, state in states.items() if state in _CHANGEABLE]
    left = [each for each, state in states.items() if state.startswith("Pending")]
    for part in (ready[start : start + _MAXIMUM_HOSTS] for start in range(0, len(ready), _MAXIMUM_HOSTS)):
        try:
            client.set_instance_protection(
                AutoScalingGroupName=name, InstanceIds=part, ProtectedFromScaleIn=False
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            left += part
    return left
