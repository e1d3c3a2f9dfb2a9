"""The services, hosts and tasks of a platform's ECS cluster: read, ended and deleted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import Account
from inference_contracts.errors import UserError
from inference_contracts.task_tags import LABEL_TAGS

EcsObject = Mapping[str, Any]
#: Most objects of one call (Amazon ECS API Reference, DescribeServices, DescribeContainerInstances,
#: DescribeTasks).
_SERVICES, _HOSTS, _TASKS = 10, 100, 100


def cluster_exists(account: Account, cluster: str) -> bool:
    """Return whether the cluster is active."""
    found = account.client("ecs").describe_clusters(clusters=[cluster])["clusters"]
    return any(each["status"] == "ACTIVE" for each in found)


def services(account: Account, cluster: str) -> list[EcsObject]:
    """Return the active services with their tags, by name."""
    client = account.client("ecs")
    pages = client.get_paginator("list_services").paginate(cluster=cluster)
    arns = [arn for page in pages for arn in page["serviceArns"]]
    found = [
        service
        for part in _parts(arns, _SERVICES)
        for service in client.describe_services(cluster=cluster, services=part, include=["TAGS"])["services"]
        if service["status"] == "ACTIVE"
    ]
    return sorted(found, key=lambda each: str(each["serviceName"]))


def hosts(account: Account, cluster: str) -> list[EcsObject]:
    """Return the container instances with their health."""
    client = account.client("ecs")
    pages = client.get_paginator("list_container_instances").paginate(cluster=cluster)
    arns = [arn for page in pages for arn in page["containerInstanceArns"]]
    return [
        host
        for part in _parts(arns, _HOSTS)
        for host in client.describe_container_instances(
            cluster=cluster, containerInstances=part, include=["CONTAINER_INSTANCE_HEALTH"]
        )["containerInstances"]
    ]


def tasks(account: Account, cluster: str) -> list[EcsObject]:
    """Return the tasks that have not stopped. One that drains is wanted as STOPPED."""
    client = account.client("ecs")
    arns = [
        arn
        for wanted in ("RUNNING", "STOPPED")
        for page in client.get_paginator("list_tasks").paginate(cluster=cluster, desiredStatus=wanted)
        for arn in page["taskArns"]
    ]
    return [
        task
        for part in _parts(list(dict.fromkeys(arns)), _TASKS)
        for task in client.describe_tasks(cluster=cluster, tasks=part)["tasks"]
        if task["lastStatus"] != "STOPPED"
    ]


def tags_of(found: EcsObject) -> dict[str, str]:
    """Return the tags of an object."""
    return {each["key"]: each["value"] for each in found.get("tags", [])}


def serves(service: EcsObject) -> bool:
    """Return whether a service belongs to a release of a model."""
    return bool(tags_of(service).get(LABEL_TAGS["release"]))


def _parts(values: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(values), size):
        yield list(values[start : start + size])


# Deletes revisions of a platform's task definitions that nothing uses.
#
# CloudFormation deregisters the revision that an update replaces. It stays, inactive, with the names of
# secrets and the environment in it
# (https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deregister-task-definition-v2.html).

#: Inactive revisions of a family that stay, so that a person can compare the newest change.
KEPT_REVISIONS = 2
#: Most task definitions of one call (Amazon ECS API Reference, DeleteTaskDefinitions).
_AT_ONCE = 10


def old_revisions(account: Account, platform: str, *, tag: str) -> list[str]:
    """Return the ARNs of inactive revisions that no service uses, without the newest of each family.

    platform: Name of the platform: its families begin with it.
    tag: Key of the tag that its task definitions have. Families of a platform with a longer name have another
        value.
    """
    client = account.client("ecs")
    used = _used(account, platform)
    return [
        arn
        for family in _families(client, platform)
        for arn in sorted(set(_inactive(client, family)) - used, key=_revision)[:-KEPT_REVISIONS]
        if _is_ours(client, arn, platform, tag)
    ]


def delete_revisions(account: Account, arns: Sequence[str]) -> list[str]:
    """Delete revisions, and return the names of those that AWS accepted.

    A revision that tasks still have stays until they end, in the state ``DELETE_IN_PROGRESS``
    (Amazon ECS API Reference, DeleteTaskDefinitions).

    arns: The revisions.
    """
    deleted: list[str] = []
    for start in range(0, len(arns), _AT_ONCE):
        part = list(arns[start : start + _AT_ONCE])
        answer = account.client("ecs").delete_task_definitions(taskDefinitions=part)
        failed = {each["arn"] for each in answer.get("failures", [])}
        deleted += [arn.rsplit("/", 1)[-1] for arn in part if arn not in failed]
    return deleted


def _used(account: Account, platform: str) -> set[str]:
    if not cluster_exists(account, platform):
        return set()
    return {
        str(deployment["taskDefinition"])
        for service in services(account, platform)
        for deployment in service["deployments"]
    }


def _families(client: Any, platform: str) -> Iterator[str]:
    pages = client.get_paginator("list_task_definition_families")
    for page in pages.paginate(familyPrefix=f"{platform}-", status="ALL"):
        yield from page["families"]


def _inactive(client: Any, family: str) -> Iterator[str]:
    """Yield the inactive revisions of a family."""
    pages = client.get_paginator("list_task_definitions")
    for page in pages.paginate(familyPrefix=family, status="INACTIVE"):
        yield from page["taskDefinitionArns"]


def _revision(arn: str) -> int:
    return int(arn.rsplit(":", 1)[-1])


def _is_ours(client: Any, arn: str, platform: str, tag: str) -> bool:
    answer = client.describe_task_definition(taskDefinition=arn, include=["TAGS"])
    return {"key": tag, "value": platform} in answer.get("tags", [])


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
