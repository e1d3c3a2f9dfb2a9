"""Log groups that exist before the stack that has them in its template."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import describe_error, readable_errors
from inference_blueprints.operate.changes.findings import Finding, Held
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.check_results import CheckResult

CHECK = "log groups"
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
            yield CheckResult(CHECK, "error", message)
        else:
            message = f"{name} exists, so the stack takes it over with its events"
            yield Held(CHECK, stack, message, partial(_retain, logical_id), imports=True)


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


def _retain(logical_id: str, template: dict[str, Any]) -> None:
    template["Resources"][logical_id]["DeletionPolicy"] = "Retain"
