"""What a change does to the hosts and tasks of a platform on Amazon ECS."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.changes.platform_change import (
    ASSOCIATIONS,
    Finding,
    Held,
    PlatformChange,
    Prepared,
    Resource,
    Template,
    listed,
    spelled,
)
from inference_blueprints.operate.ecs_cluster import hosts, services, tasks, unprotect_groups
from inference_contracts.ecs_names import LARGEST_NUMBER
from inference_contracts.errors import UserError

# Hosts on ECS that a change replaces or removes, and that services still use.
#
# ECS removes no capacity provider that services or tasks use (aws/containers-roadmap#631; API Reference,
# PutClusterCapacityProviders), and services move only after the stack of the hosts is complete.

OLD_HOSTS_CHECK = "hosts"
_PROVIDER: Final = "AWS::ECS::CapacityProvider"
_OUTPUT: Final = "Fn::GetStackOutput"
#: Time in which tasks on old hosts end their streams, and time between two questions for them, in seconds.
_PATIENCE_SECONDS: Final = 3600.0
_POLL_SECONDS: Final = 5.0


def old_hosts(change: PlatformChange) -> Iterator[Finding]:
    """Keep hosts until services have moved from them, then let them go."""
    dropped: dict[str, dict[str, Resource]] = {}
    for stack, logical_id, resource in change.dropped_resources():
        dropped.setdefault(stack, {})[logical_id] = resource
    for stack, resources in dropped.items():
        names = sorted(_providers(resources))
        cluster = change.ecs_cluster(stack) if names else None
        if cluster is None:
            continue
        users = _users(change.account, cluster, names)
        listed = ", ".join(names)
        if users:
            message = (
                f"the capacity providers {listed} and their hosts stay until services have moved: "
                f"{', '.join(users)}. Those of a model that the blueprint does not have end with "
                "`blueprints prune`"
            )
            yield Held(
                OLD_HOSTS_CHECK, stack, message, partial(_keep_hosts, _with_values(resources, change.account))
            )
        else:
            groups = change.auto_scaling_groups(stack, resources)
            message = f"waits for the end of tasks on the hosts of {listed}, which are removed"
            yield Prepared(
                OLD_HOSTS_CHECK, stack, message, partial(_release, change.account, cluster, names, groups)
            )


def _providers(resources: Mapping[str, Resource]) -> set[str]:
    return {str(each["Properties"]["Name"]) for each in resources.values() if each["Type"] == _PROVIDER}


def _users(account: Account, cluster: str, names: Collection[str]) -> list[str]:
    """Return the services that use capacity providers. Tasks of an earlier strategy end without them."""
    with readable_errors():
        return [
            str(service["serviceName"])
            for service in services(account, cluster)
            if any(
                item["capacityProvider"] in names for item in service.get("capacityProviderStrategy") or []
            )
        ]


def _release(account: Account, cluster: str, names: Collection[str], groups: list[str]) -> None:
    """Wait for the end of tasks on hosts, and let the groups end their hosts.

    Raises UserError if tasks do not end in time.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with readable_errors():
        while left := [
            str(task["taskArn"]).rpartition("/")[2]
            for task in tasks(account, cluster)
            if task.get("capacityProviderName") in names
        ]:
            if time.monotonic() > deadline:
                raise UserError(
                    f"tasks on old hosts did not end within {_PATIENCE_SECONDS:.0f} s: {', '.join(left)}; "
                    "the old hosts stay; stop these tasks, or wait, and deploy again"
                )
            time.sleep(_POLL_SECONDS)
        unprotect_groups(account, groups)


def _keep_hosts(kept: Mapping[str, Resource], template: dict[str, Any]) -> None:
    """Add resources to a template, and their capacity providers to the list of the cluster."""
    resources = template["Resources"]
    resources.update(kept)
    groups = {
        logical_id: str(each["Properties"]["Name"])
        for logical_id, each in kept.items()
        # Managed Instances are never in the list.
        if each["Type"] == _PROVIDER and "AutoScalingGroupProvider" in each["Properties"]
    }
    for each in resources.values():
        if each["Type"] == ASSOCIATIONS and groups:
            names = each["Properties"]["CapacityProviders"]
            each["Properties"]["CapacityProviders"] = [*names, *groups.values()]
            each["DependsOn"] = [*each.get("DependsOn", []), *groups]


def _with_values(value: Any, account: Account) -> Any:
    """Replace outputs of other stacks by their values: a stack drops an output that nothing reads."""
    if isinstance(value, Mapping):
        if set(value) == {_OUTPUT}:
            return _output(value[_OUTPUT], account)
        return {name: _with_values(each, account) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_values(each, account) for each in value]
    return value


def _output(reference: Mapping[str, str], account: Account) -> str:
    with readable_errors():
        [found] = account.client("cloudformation").describe_stacks(StackName=reference["StackName"])["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}
    return str(outputs[reference["OutputName"]])


# Hosts of Auto Scaling groups on ECS that never joined their cluster.
#
# The agent of hosts of earlier releases did not start. Such a host costs money and takes no task. It stays,
# because it is protected and ECS does not know it, and its group counts it, so that no other host starts.

LOST_HOSTS_CHECK = "lost hosts"
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
            yield Prepared(LOST_HOSTS_CHECK, stack, message, partial(_end, change.account, lost))


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


Properties = Mapping[str, Any]

KEPT_FLOORS_CHECK = "floors"
_TARGET: Final = "AWS::ApplicationAutoScaling::ScalableTarget"
_SERVICE: Final = "AWS::ECS::Service"
_POLICY: Final = "AWS::IAM::Policy"
_REGISTER, _UPDATE = "application-autoscaling:RegisterScalableTarget", "ecs:UpdateService"
_MINIMUM, _MAXIMUM, _NUMBER = "MinCapacity", "MaxCapacity", "DesiredCount"
#: Targets of one answer (Application Auto Scaling API Reference, DescribeScalableTargets, MaxResults).
_PAGE: Final = 50


def kept_floors(change: PlatformChange) -> Iterator[Finding]:
    """Write the numbers of tasks that hold now where CloudFormation would write those of the blueprint.

    CloudFormation registers a target with all properties as soon as one of them changes. Until the capacity
    shift has set its floor again, or until the next scheduled action, scaling policies could end tasks down
    to the blueprint's number. If only this number changes and what holds is in the new range, nothing is
    written.

    On a pool that models share by the hour, the same holds for the largest number, and for the desired count
    of workers that serve batch alone: CloudFormation writes it with every change of the service
    (aws/containers-roadmap#493), and a service without one begins with a task, for which there may be no
    place (aws/aws-cdk#13130).
    """
    shifted = {name for template in change.new.values() for name in _shifted_services(template)}
    changed = list(_changed_targets(change, shifted))
    ranges = _live_ranges(change.account, [str(new["ResourceId"]) for *_, new, _ in changed])
    for stack, logical_id, before, after, most in changed:
        service = str(after["ResourceId"])
        if service not in ranges:
            continue
        floor, ceiling = ranges[service]
        largest = after[_MAXIMUM] if most is None else most
        kept = {_MINIMUM: min(largest, max(after[_MINIMUM], floor))}
        if most is not None:
            kept[_MAXIMUM] = min(most, max(kept[_MINIMUM], ceiling))
        own = {name: after[name] for name in kept}
        live = {_MINIMUM: floor, _MAXIMUM: ceiling}
        if all(kept[name] == live[name] for name in kept) and {**before, **own} == after:
            kept = {name: before[name] for name in kept}
        if kept != own:
            name = service.rpartition("/")[2]
            number = "floor" if most is None else "range"
            message = f"{name} keeps the {number} that its schedule or the capacity shift has set"
            yield Held(KEPT_FLOORS_CHECK, stack, message, partial(_keep, logical_id, kept))
    yield from _kept_numbers(change, shifted)


def _kept_numbers(change: PlatformChange, shifted: Collection[str]) -> Iterator[Finding]:
    """Keep the desired counts of services without a target, of which the capacity shift sets the number."""
    changed = []
    for stack, logical_id, old, new in change.changed_resources():
        before, after = old.get("Properties", {}), new.get("Properties", {})
        if new["Type"] == _SERVICE and before != after and {_NUMBER, "ServiceName"} <= before.keys() & after:
            changed.append((stack, logical_id, before, after))
    clusters = {name.rpartition("/")[2]: name.rpartition("/")[0] for name in shifted}
    named = {str(after["ServiceName"]) for *_, after in changed} & clusters.keys()
    live = {
        str(each["serviceName"]): int(each["desiredCount"])
        for cluster in sorted({clusters[name] for name in named})
        for each in services(change.account, cluster)
    }
    for stack, logical_id, before, after in changed:
        name = str(after["ServiceName"])
        if name not in named or name not in live:
            continue
        number = max(after[_NUMBER], live[name])
        if number == live[name] and {**before, _NUMBER: after[_NUMBER]} == after:
            number = before[_NUMBER]
        if number != after[_NUMBER]:
            message = f"{name} keeps the number of tasks that the capacity shift has set"
            yield Held(KEPT_FLOORS_CHECK, stack, message, partial(_keep, logical_id, {_NUMBER: number}))


def _changed_targets(
    change: PlatformChange, shifted: Collection[str]
) -> Iterator[tuple[str, str, Properties, Properties, int | None]]:
    """Yield stack, logical ID and properties of each changed target whose floor something else sets.

    The last is the largest number of the blueprint, if something else sets the largest number, too.
    """
    for stack, logical_id, old, new in change.changed_resources():
        before, after = old.get("Properties", {}), new.get("Properties", {})
        if new["Type"] != _TARGET or before == after or before.get("ResourceId") != after.get("ResourceId"):
            continue
        if str(after["ResourceId"]).removeprefix("service/") in shifted or after.get("ScheduledActions"):
            yield stack, logical_id, before, after, new.get("Metadata", {}).get(LARGEST_NUMBER)


def _shifted_services(template: Template) -> Iterator[str]:
    """Yield the services of which the capacity shift may set numbers of tasks, as ``cluster/service``."""
    resources: Mapping[str, Resource] = template.get("Resources", {})
    for resource in resources.values():
        if resource["Type"] != _POLICY:
            continue
        statements = listed(resource["Properties"]["PolicyDocument"]["Statement"])
        if any(_REGISTER in listed(each.get("Action", [])) for each in statements):
            for each in statements:
                if _UPDATE in listed(each.get("Action", [])):
                    yield from (spelled(arn).rpartition(":service/")[2] for arn in listed(each["Resource"]))


def _live_ranges(account: Account, services: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the smallest and the largest number of tasks that hold now, of each service that scales."""
    with readable_errors():
        return {
            target["ResourceId"]: (int(target[_MINIMUM]), int(target[_MAXIMUM]))
            for start in range(0, len(services), _PAGE)
            for target in account.client("application-autoscaling").describe_scalable_targets(
                ServiceNamespace="ecs", ResourceIds=list(services[start : start + _PAGE])
            )["ScalableTargets"]
        }


def _keep(logical_id: str, kept: Mapping[str, int], template: dict[str, Any]) -> None:
    template["Resources"][logical_id]["Properties"].update(kept)
