"""What CloudFormation or Helm would refuse: stacks, names and releases as they are deployed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import describe_error, readable_errors
from inference_blueprints.operate.changes.job_checks import kept_stacks
from inference_blueprints.operate.changes.platform_change import (
    FAILED_CREATIONS,
    Finding,
    Held,
    PlatformChange,
    Resource,
    kubernetes_objects,
    references,
)
from inference_blueprints.operate.check_results import CheckResult
from inference_catalog.cloudformation_types import cloudformation_types

FAILED_STACKS_CHECK = "stacks"


def failed_stacks(change: PlatformChange) -> Iterator[Finding]:
    """Find stacks that neither CloudFormation nor the CDK can go on with.

    The CDK deletes a stack whose creation failed, and creates it again, unless it is protected from
    termination. States: CloudFormation User Guide, "Stack status codes", "Continue rolling back an update".
    """
    for name in sorted(change.new.keys() & change.stacks.keys()):
        status = change.stacks[name].status
        if status == "UPDATE_ROLLBACK_FAILED":
            command = f"aws cloudformation continue-update-rollback --stack-name {name}"
            yield _error(change, name, "its last update could not be rolled back", command)
        elif status == "DELETE_FAILED":
            command = f"aws cloudformation delete-stack --stack-name {name}"
            yield _error(change, name, "it could not be deleted; its events name the resource", command)
        elif status in FAILED_CREATIONS and _is_protected(change, name):
            command = (
                "aws cloudformation update-termination-protection --no-enable-termination-protection "
                f"--stack-name {name}"
            )
            yield _error(
                change,
                name,
                "its creation failed, and it is protected, so it cannot be created again",
                command,
            )


def _is_protected(change: PlatformChange, name: str) -> bool:
    with readable_errors():
        described = change.account.client("cloudformation").describe_stacks(
            StackName=change.stacks[name].stack_id
        )
    return bool(described["Stacks"][0].get("EnableTerminationProtection"))


def _error(change: PlatformChange, name: str, why: str, command: str) -> CheckResult:
    message = f"{name} is {change.stacks[name].status}: {why}"
    return CheckResult(FAILED_STACKS_CHECK, "error", message, f"{command} --region {change.account.region}")


MOVED_RESOURCES_CHECK = "moved resources"
_MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"


def moved_resources(change: PlatformChange) -> Iterator[Finding]:
    """Find resources that AWS refuses to create because they exist in another stack.

    A name belongs to one resource (the types' `primaryIdentifier`, and for example eksctl#7753 for pod
    identity associations). Objects of a manifest are created with ``kubectl create``, which refuses those
    that exist (aws-cdk, kubectl-handler/apply). It does not matter if the stack that gives a resource away
    is deployed first: then the name is free.
    """
    owners = {
        identity: (stack, logical_id)
        for stack, template in change.deployed.items()
        for logical_id, resource in template.get("Resources", {}).items()
        for identity in _identities(resource)
    }
    for stack, logical_id, resource in change.added_resources():
        for identity in _identities(resource):
            owner, other = owners.get(identity, (stack, ""))
            if owner != stack and not _is_first(change, owner, stack):
                what = " ".join(filter(None, identity))
                message = f"{stack}: {logical_id}: {what} exists, and {owner} has it as {other}"
                yield CheckResult(MOVED_RESOURCES_CHECK, "error", f"{message}; delete it, and deploy again")


def _is_first(change: PlatformChange, owner: str, stack: str) -> bool:
    """Whether a stack is deployed before another one."""
    return stack in change.stacks and change.stacks[owner].level < change.stacks[stack].level


def _identities(resource: Resource) -> Iterator[tuple[str, ...]]:
    """Yield what only one resource can be, without what CloudFormation computes."""
    properties: dict[str, Any] = resource.get("Properties", {})
    if resource["Type"] == _MANIFEST:
        if str(properties.get("Overwrite", False)).lower() != "true":
            yield from kubernetes_objects(properties["Manifest"])
        return
    known = cloudformation_types().get(resource["Type"])
    names = [properties.get(name) for name in known.names] if known else []
    if names and all(isinstance(name, str) for name in names):
        yield resource["Type"], *map(str, names)


# Log groups that exist before the stack that has them in its template.

EXISTING_LOG_GROUPS_CHECK = "log groups"
_LOG_GROUP = "AWS::Logs::LogGroup"


def existing_log_groups(change: PlatformChange) -> Iterator[Finding]:
    """Let CloudFormation take over log groups that a service made, or that an earlier platform left.

    EKS makes the log group of a control plane if it is not there, and CloudFormation refuses to create it
    again. CloudFormation takes over a resource with a name of its own if its deletion policy is Retain and no
    stack has it (CloudFormation User Guide, "Import AWS resources into a CloudFormation stack
    automatically").
    """
    for stack, logical_id, resource in change.added_resources():
        name = resource.get("Properties", {}).get("LogGroupName")
        if resource["Type"] != _LOG_GROUP or not isinstance(name, str) or not _exists(change, name):
            continue
        owner = _owner(change, name)
        if owner in change.deployed:
            continue  # `moved_resources` knows both stacks
        if owner:
            message = f"{stack}: {name} exists and belongs to the stack {owner}; delete it there first"
            yield CheckResult(EXISTING_LOG_GROUPS_CHECK, "error", message)
        else:
            message = f"{name} exists, so the stack takes it over with its events"
            yield Held(
                EXISTING_LOG_GROUPS_CHECK,
                stack,
                message,
                partial(_retain_log_group, logical_id),
                imports=True,
            )


def _exists(change: PlatformChange, name: str) -> bool:
    with readable_errors():
        pages = change.account.client("logs").get_paginator("describe_log_groups")
        return any(
            group["logGroupName"] == name
            for page in pages.paginate(logGroupNamePrefix=name)
            for group in page["logGroups"]
        )


def _owner(change: PlatformChange, name: str) -> str | None:
    """Return the stack that has a log group."""
    cloudformation = change.account.client("cloudformation")
    with readable_errors():
        try:
            found = cloudformation.describe_stack_resources(PhysicalResourceId=name)["StackResources"]
        except ClientError as error:
            if "does not exist" in describe_error(error):
                return None
            raise
    # A stack that has lost a resource still describes it.
    return next((each["StackName"] for each in found if each["ResourceStatus"] != "DELETE_COMPLETE"), None)


def _retain_log_group(logical_id: str, template: dict[str, Any]) -> None:
    template["Resources"][logical_id]["DeletionPolicy"] = "Retain"


MOVED_RELEASES_CHECK = "Helm releases"
_CHART = "Custom::AWSCDK-EKS-HelmChart"
#: Metadata of a resource that one step keeps. CloudFormation does not change a deletion policy alone, but it
#: does together with metadata (CloudFormation User Guide, "Update behaviors of stack resources").
_MARK = "inference-blueprints:step"


def moved_releases(change: PlatformChange) -> Iterator[Finding]:
    """Keep a release that a stack gives away while another one takes it over.

    CDK's handler uninstalls a release when its resource is deleted (aws-cdk, kubectl-handler/helm), also when
    another stack has upgraded it since. It also uninstalls it if the creation in the other stack is rolled
    back. So both have the policy Retain for one step. If the first stack stays as it is because of running
    jobs, it keeps the release.
    """
    kept = kept_stacks(change)
    new = {
        _release(resource): (stack, logical_id)
        for stack, template in change.new.items()
        for logical_id, resource in template.get("Resources", {}).items()
        if resource["Type"] == _CHART
    }
    for stack, logical_id, old in change.dropped_resources():
        if old["Type"] != _CHART or _release(old) not in new:
            continue
        taker, taken = new[_release(old)]
        if taker == stack or old.get("DeletionPolicy") == "Retain":
            continue
        if stack in kept:
            why = f"release {'/'.join(_release(old))} stays in {stack}"
            yield Held(MOVED_RELEASES_CHECK, taker, f"{why} while its jobs run", partial(_leave_out, taken))
            continue
        missing = sorted(set(references(old)) - change.new[stack]["Resources"].keys() - _PSEUDO)
        name = "/".join(_release(old))
        if missing:
            message = f"{stack}: release {name} goes to {taker}, and needs {', '.join(missing)} of {stack}"
            yield CheckResult(
                MOVED_RELEASES_CHECK, "error", f"{message} until then; deploy an earlier release first"
            )
            continue
        why = f"release {name} goes to {taker}"
        yield Held(
            MOVED_RELEASES_CHECK,
            stack,
            f"{why}; this stack gives it up afterwards",
            partial(_keep, logical_id, old),
        )
        yield Held(
            MOVED_RELEASES_CHECK, taker, f"{why}, which keeps it also if it fails", partial(_retain, taken)
        )


_PSEUDO = frozenset({"AWS::AccountId", "AWS::Region", "AWS::Partition", "AWS::URLSuffix", "AWS::StackName"})


def _release(resource: Resource) -> tuple[str, str]:
    properties = resource["Properties"]
    return properties.get("Namespace", "default"), properties["Release"]


def _keep(logical_id: str, old: Resource, template: dict[str, Any]) -> None:
    """Leave the resource in its stack as it is deployed."""
    kept = copy.deepcopy(dict(old))
    kept["DependsOn"] = [each for each in kept.get("DependsOn", ()) if each in template["Resources"]]
    template["Resources"][logical_id] = kept
    _retain(logical_id, template)


def _leave_out(logical_id: str, template: dict[str, Any]) -> None:
    """Take a resource out of a template. Nothing but an order of creation refers to a release."""
    del template["Resources"][logical_id]
    for resource in template["Resources"].values():
        if logical_id in resource.get("DependsOn", ()):
            resource["DependsOn"] = [each for each in resource["DependsOn"] if each != logical_id]


def _retain(logical_id: str, template: dict[str, Any]) -> None:
    """Keep what the resource stands for when the stack loses it."""
    resource = template["Resources"][logical_id]
    resource["DeletionPolicy"] = "Retain"
    resource["Metadata"] = {**resource.get("Metadata", {}), _MARK: "kept"}
