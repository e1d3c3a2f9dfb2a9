"""Finds and deletes billable resources that belong to a platform.

Karpenter, the VPC network plug-in, the EBS driver and EKS create resources outside all stacks. They tag them
with the cluster's name, and with the platform's tag if this library configures it. The control plane's log
group has no tags; its name contains the cluster's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from inference_blueprints.operate.aws.account import Account
from inference_catalog.log_groups import control_plane_log_group
from inference_catalog.tags import PLATFORM_TAG
from inference_contracts.records import dataclass

#: Seconds between two requests to EC2.
POLL_SECONDS = 2.0
_TAGS_AT_ONCE = 20
_NODE_POOL_TAG = "karpenter.sh/nodepool"
Tags = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Leftover:
    """A billable resource, or one that keeps a network from being deleted."""

    kind: str
    """Key of `EC2_KINDS`, ``load balancer`` or ``log group``."""
    identifier: str
    """Id, ARN or name."""


@dataclass(frozen=True, slots=True)
class Ec2Kind:
    """How EC2 lists and deletes one kind of resource."""

    describe: str
    """Operation that lists it."""
    answers: tuple[str, ...]
    """Keys that lead to the resources in its answer."""
    identifier: str
    """Key of a resource's id."""
    delete: tuple[str, str]
    """Operation that deletes it, and the parameter for the id; a list if its name is plural."""
    state: str | None = None
    """Key of its state; None if a listed resource always exists."""
    gone: tuple[str, ...] = ()
    """States without cost."""
    tags: str = "Tags"
    """Key of its tags."""


#: In the order of deletion. The operations are those of the Amazon EC2 API Reference.
EC2_KINDS: Mapping[str, Ec2Kind] = {
    "instance": Ec2Kind(
        "describe_instances",
        ("Reservations", "Instances"),
        "InstanceId",
        ("terminate_instances", "InstanceIds"),
        "State",
        ("terminated",),
    ),
    "volume": Ec2Kind("describe_volumes", ("Volumes",), "VolumeId", ("delete_volume", "VolumeId")),
    "snapshot": Ec2Kind(
        "describe_snapshots", ("Snapshots",), "SnapshotId", ("delete_snapshot", "SnapshotId")
    ),
    "network interface": Ec2Kind(
        "describe_network_interfaces",
        ("NetworkInterfaces",),
        "NetworkInterfaceId",
        ("delete_network_interface", "NetworkInterfaceId"),
        tags="TagSet",
    ),
    "NAT gateway": Ec2Kind(
        "describe_nat_gateways",
        ("NatGateways",),
        "NatGatewayId",
        ("delete_nat_gateway", "NatGatewayId"),
        "State",
        ("deleted", "deleting"),
    ),
    "security group": Ec2Kind(
        "describe_security_groups", ("SecurityGroups",), "GroupId", ("delete_security_group", "GroupId")
    ),
}


def owner_tags(platform: str) -> Tags:
    """Return the tags of a platform's resources; one of them is enough.

    platform: ``metadata.name``, which is also the cluster's.
    """
    return {
        PLATFORM_TAG: platform,
        _cluster_tag(platform): "owned",
        "cluster.k8s.amazonaws.com/name": platform,
    }


def leftovers(account: Account, platform: str) -> list[Leftover]:
    """Return every billable resource of a platform, including those of its stacks."""
    owners = owner_tags(platform)
    found = [each for kind in EC2_KINDS for each in _in_ec2(account.client("ec2"), kind, owners)]
    found += _load_balancers(account.client("elbv2"))
    tagged = [leftover for leftover, tags in found if tags.items() & owners.items()]
    return [*tagged, *_log_groups(account.client("logs"), platform)]


def nodes_of_pools(account: Account, platform: str) -> list[str]:
    """Return the ids of instances that Karpenter started and that are not terminated."""
    cluster = _cluster_tag(platform)
    return [
        instance.identifier
        for instance, tags in _in_ec2(account.client("ec2"), "instance", [cluster])
        if tags[cluster] == "owned" and _NODE_POOL_TAG in tags
    ]


def sweep(
    account: Account,
    platform: str,
    *,
    owned: Collection[str],
    patience_seconds: float,
    say: Callable[[str], None],
) -> None:
    """Delete resources that no stack owns, and retry until they are gone or the time is over.

    owned: Physical ids of the stacks' resources, which are not deleted here.
    patience_seconds: Maximum time; instances need some to end, and hold volumes and network interfaces until
        then.
    say: Called with a line for each resource that is deleted.
    """
    deadline = time.monotonic() + patience_seconds
    told: set[Leftover] = set()
    while left := [each for each in leftovers(account, platform) if each.identifier not in owned]:
        for each in left:
            if each not in told:
                say(f"{each.kind} {each.identifier}: deleting, because no stack owns it")
                told.add(each)
        _delete(account, left)
        if time.monotonic() > deadline:
            return
        time.sleep(POLL_SECONDS)


def _delete(account: Account, left: Sequence[Leftover]) -> None:
    """Try to delete each resource once; a refusal because it is in use is not an error yet."""
    ec2, balancers = account.client("ec2"), account.client("elbv2")
    instances = [each for each in left if each.kind == "instance"]
    for each in instances or left:
        if each.kind == "load balancer":
            balancers.delete_load_balancer(LoadBalancerArn=each.identifier)
            continue
        if each.kind == "log group":
            account.client("logs").delete_log_group(logGroupName=each.identifier)
            continue
        operation, parameter = EC2_KINDS[each.kind].delete
        value = [each.identifier] if parameter.endswith("s") else each.identifier
        try:
            getattr(ec2, operation)(**{parameter: value})
        except ec2.exceptions.ClientError as error:
            if error.response["Error"]["Code"] not in _NOT_YET:
                raise


#: EC2's error codes for resources that are still in use or already gone (Amazon EC2 API Reference).
_NOT_YET = frozenset(
    {
        "VolumeInUse",
        "IncorrectState",
        "DependencyViolation",  # a security group that a network interface or another group still uses
        "InvalidGroup.NotFound",
        "InvalidParameterValue",  # a network interface that is still attached
        "InvalidNetworkInterface.InUse",
        "InvalidNetworkInterfaceID.NotFound",
        "InvalidSnapshot.NotFound",
        "InvalidVolume.NotFound",
    }
)


def _cluster_tag(platform: str) -> str:
    """Return the key of the tag with which Kubernetes components mark their resources."""
    return f"kubernetes.io/cluster/{platform}"


def _in_ec2(ec2: Any, kind: str, tag_keys: Iterable[str]) -> Iterator[tuple[Leftover, Tags]]:
    """Iterate over EC2's resources of one kind that have any of these tag keys."""
    how = EC2_KINDS[kind]
    filters = [{"Name": "tag-key", "Values": list(tag_keys)}]
    for resource in _listed(ec2, how.describe, how.answers, Filters=filters):
        state = resource[how.state] if how.state else None
        if (state["Name"] if isinstance(state, dict) else state) not in how.gone:
            yield Leftover(kind, resource[how.identifier]), _tags(resource.get(how.tags, ()))


def _listed(client: Any, operation: str, keys: Sequence[str], **filters: Any) -> list[dict[str, Any]]:
    """Return the items of all pages of an operation, at nested keys."""
    found: list[dict[str, Any]] = list(client.get_paginator(operation).paginate(**filters))
    for key in keys:
        found = [inner for outer in found for inner in outer[key]]
    return found


def _log_groups(logs: Any, platform: str) -> list[Leftover]:
    """Return the log group of the control plane. EKS may create it again with its last lines."""
    name = control_plane_log_group(platform)
    listed = _listed(logs, "describe_log_groups", ["logGroups"], logGroupNamePrefix=name)
    return [Leftover("log group", each["logGroupName"]) for each in listed if each["logGroupName"] == name]


def _load_balancers(balancers: Any) -> Iterator[tuple[Leftover, Tags]]:
    """Iterate over all load balancers, which cannot be filtered by tag."""
    listed = _listed(balancers, "describe_load_balancers", ["LoadBalancers"])
    arns = [balancer["LoadBalancerArn"] for balancer in listed]
    for first in range(0, len(arns), _TAGS_AT_ONCE):
        answer = balancers.describe_tags(ResourceArns=arns[first : first + _TAGS_AT_ONCE])
        for description in answer["TagDescriptions"]:
            yield Leftover("load balancer", description["ResourceArn"]), _tags(description["Tags"])


def _tags(listed: Iterable[Tags]) -> Tags:
    """Return a mapping of the tags that AWS lists."""
    return {tag["Key"]: tag["Value"] for tag in listed}
