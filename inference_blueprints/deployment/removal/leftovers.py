"""What costs money and carries a platform's tags: found, swept away, and proven to be gone.

Karpenter, the VPC network plug-in and the EBS driver make resources that no stack knows. They tag them with
the cluster's name, and with the platform's tag where this library says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference_blueprints.catalog.tags import PLATFORM_TAG
from inference_blueprints.deployment.aws.account import Account

#: How often EC2 is asked, in seconds.
POLL_SECONDS = 2.0
_TAGS_AT_ONCE = 20
_NODE_POOL_TAG = "karpenter.sh/nodepool"
Tags = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Leftover:
    """A billable resource, or one that keeps a network from being deleted.

    Parameters
    ----------
    kind
        Key of `EC2_KINDS`, or ``load balancer``.
    identifier
        Its id or ARN.
    """

    kind: str
    identifier: str


@dataclass(frozen=True, slots=True)
class Ec2Kind:
    """How EC2 lists and deletes one kind of resource.

    Parameters
    ----------
    describe
        Operation that lists it.
    answers
        Keys that lead to the resources in its answer.
    identifier
        Key of a resource's id.
    delete
        Operation that deletes it, and the parameter that takes the id; a list where the name is plural.
    state
        Key of its state; None where a listed resource always exists.
    gone
        States that cost nothing any more.
    tags
        Key of its tags.
    """

    describe: str
    answers: tuple[str, ...]
    identifier: str
    delete: tuple[str, str]
    state: str | None = None
    gone: tuple[str, ...] = ()
    tags: str = "Tags"


#: In the order in which they are deleted. Operations as the Amazon EC2 API Reference names them.
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
}


def owner_tags(platform: str) -> Tags:
    """Return the tags any one of which makes a resource the platform's.

    Parameters
    ----------
    platform
        ``metadata.name``, which is also the cluster's.
    """
    return {
        PLATFORM_TAG: platform,
        _cluster_tag(platform): "owned",
        "cluster.k8s.amazonaws.com/name": platform,
    }


def leftovers(account: Account, platform: str) -> list[Leftover]:
    """Return every billable resource of a platform, those of its stacks included."""
    owners = owner_tags(platform)
    found = [each for kind in EC2_KINDS for each in _in_ec2(account.client("ec2"), kind, owners)]
    found += _load_balancers(account.client("elbv2"))
    return [leftover for leftover, tags in found if tags.items() & owners.items()]


def nodes_of_pools(account: Account, platform: str) -> list[str]:
    """Return the ids of instances that Karpenter started and that have not ended."""
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
    """Delete what no stack owns, again and again while something holds it, until it is gone or patience ends.

    Parameters
    ----------
    owned
        Physical ids of the resources of stacks, which are the stacks' business.
    patience_seconds
        How long instances may take to end, for they hold volumes and network interfaces.
    say
        Called with a line for each resource that is deleted.
    """
    deadline = time.monotonic() + patience_seconds
    told: set[Leftover] = set()
    while left := [each for each in leftovers(account, platform) if each.identifier not in owned]:
        for each in left:
            if each not in told:
                say(f"{each.kind} {each.identifier}: deleting, for no stack owns it")
                told.add(each)
        _delete(account, left)
        if time.monotonic() > deadline:
            return
        time.sleep(POLL_SECONDS)


def _delete(account: Account, left: Sequence[Leftover]) -> None:
    """Ask once for each; a refusal because another one is in use is no failure until patience ends."""
    ec2, balancers = account.client("ec2"), account.client("elbv2")
    instances = [each for each in left if each.kind == "instance"]
    for each in instances or left:
        if each.kind == "load balancer":
            balancers.delete_load_balancer(LoadBalancerArn=each.identifier)
            continue
        operation, parameter = EC2_KINDS[each.kind].delete
        value = [each.identifier] if parameter.endswith("s") else each.identifier
        try:
            getattr(ec2, operation)(**{parameter: value})
        except ec2.exceptions.ClientError as error:
            if error.response["Error"]["Code"] not in _NOT_YET:
                raise


#: EC2's words for what is still held by something that is going (Amazon EC2 API Reference, error codes).
_NOT_YET = frozenset(
    {
        "VolumeInUse",
        "IncorrectState",
        "InvalidParameterValue",  # a network interface that is still attached
        "InvalidNetworkInterface.InUse",
        "InvalidNetworkInterfaceID.NotFound",
        "InvalidSnapshot.NotFound",
        "InvalidVolume.NotFound",
    }
)


def _cluster_tag(platform: str) -> str:
    """Return the key of the tag by which Kubernetes' components know what is theirs."""
    return f"kubernetes.io/cluster/{platform}"


def _in_ec2(ec2: Any, kind: str, tag_keys: Iterable[str]) -> Iterator[tuple[Leftover, Tags]]:
    """Iterate over what EC2 lists of one kind under any of some tags, whatever their values."""
    how = EC2_KINDS[kind]
    filters = [{"Name": "tag-key", "Values": list(tag_keys)}]
    for resource in _listed(ec2, how.describe, how.answers, Filters=filters):
        state = resource[how.state] if how.state else None
        if (state["Name"] if isinstance(state, dict) else state) not in how.gone:
            yield Leftover(kind, resource[how.identifier]), _tags(resource[how.tags])


def _listed(client: Any, operation: str, keys: Sequence[str], **filters: Any) -> list[dict[str, Any]]:
    """Return what all pages of an operation list under nested keys."""
    found: list[dict[str, Any]] = list(client.get_paginator(operation).paginate(**filters))
    for key in keys:
        found = [inner for outer in found for inner in outer[key]]
    return found


def _load_balancers(balancers: Any) -> Iterator[tuple[Leftover, Tags]]:
    """Iterate over all load balancers, which cannot be asked for by a tag."""
    listed = _listed(balancers, "describe_load_balancers", ["LoadBalancers"])
    arns = [balancer["LoadBalancerArn"] for balancer in listed]
    for first in range(0, len(arns), _TAGS_AT_ONCE):
        answer = balancers.describe_tags(ResourceArns=arns[first : first + _TAGS_AT_ONCE])
        for description in answer["TagDescriptions"]:
            yield Leftover("load balancer", description["ResourceArn"]), _tags(description["Tags"])


def _tags(listed: Iterable[Tags]) -> Tags:
    """Return a mapping of the tags that AWS lists."""
    return {tag["Key"]: tag["Value"] for tag in listed}
