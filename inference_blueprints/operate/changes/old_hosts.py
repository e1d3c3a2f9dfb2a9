"""Hosts on ECS that a change replaces or removes, and that services still use.

ECS removes no capacity provider that services or tasks use (aws/containers-roadmap#631; API Reference,
PutClusterCapacityProviders), and services move only after the stack of the hosts is complete.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.changes.findings import Finding, Held, Prepared
from inference_blueprints.operate.changes.platform_change import ASSOCIATIONS, PlatformChange, Resource
from inference_blueprints.operate.ecs.cluster_reading import services, tasks
from inference_blueprints.operate.ecs.service_ends import unprotect_groups
from inference_contracts.errors import UserError

CHECK = "hosts"
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
            yield Held(CHECK, stack, message, partial(_keep, _with_values(resources, change.account)))
        else:
            groups = change.auto_scaling_groups(stack, resources)
            message = f"waits for the end of tasks on the hosts of {listed}, which are removed"
            yield Prepared(CHECK, stack, message, partial(_release, change.account, cluster, names, groups))


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


def _keep(kept: Mapping[str, Resource], template: dict[str, Any]) -> None:
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
