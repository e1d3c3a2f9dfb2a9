"""The stacks of a platform in an account: list, deletion order and outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import Account, describe_error, readable_errors
from inference_catalog.tags import PLATFORM_TAG
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

#: Kinds of stacks on which others depend, the lowest first. All other stacks depend on all of these.
FOUNDATIONS = (
    *("Data", "Network", "Stores", "Cluster", "Discovery", "Platform", "Capacity"),
    # Programs name the secrets with their keys, and rules of models the target group of the front door, which
    # cannot be deleted before.
    *("Certificates", "PlatformKeys", "FrontDoor"),
)

#: Time between two questions while CloudFormation changes a stack.
SETTLE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class DeployedStack:
    """A stack in an account."""

    name: str
    stack_id: str
    """ARN, with which a deleted stack can still be described."""
    status: str
    level: int
    """Its index in `FOUNDATIONS`; higher than these for all other stacks."""


def level(platform: str, stack: str) -> int:
    """Return the level of a stack in the order of dependencies."""
    kind = stack.removeprefix(f"{platform}-")
    return FOUNDATIONS.index(kind) if kind in FOUNDATIONS else len(FOUNDATIONS)


def deployed_stacks(cloudformation: Any, platform: str) -> list[DeployedStack]:
    """Return the stacks with a platform's tag, sorted by name."""
    pages = cloudformation.get_paginator("describe_stacks").paginate()
    found = [
        DeployedStack(
            stack["StackName"], stack["StackId"], stack["StackStatus"], level(platform, stack["StackName"])
        )
        for page in pages
        for stack in page["Stacks"]
        if {"Key": PLATFORM_TAG, "Value": platform} in stack.get("Tags", [])
    ]
    return sorted(found, key=lambda stack: stack.name)


def is_of_platform(cloudformation: Any, stack: DeployedStack, platform: str) -> bool:
    """Whether a stack, which may be deleted, has a platform's tag. Names of platforms may begin alike."""
    [found] = cloudformation.describe_stacks(StackName=stack.stack_id)["Stacks"]
    return {"Key": PLATFORM_TAG, "Value": platform} in found.get("Tags", [])


def waves(stacks: Iterable[DeployedStack]) -> list[list[DeployedStack]]:
    """Return stacks in the order of their deletion; the stacks of one wave can be deleted at the same time.

    stacks: Any stacks of one platform.
    """
    by_level: dict[int, list[DeployedStack]] = {}
    for stack in stacks:
        by_level.setdefault(stack.level, []).append(stack)
    return [by_level[each] for each in sorted(by_level, reverse=True)]


def is_changing(status: str) -> bool:
    """Whether CloudFormation changes a stack now. One that was never more than a change set can be used."""
    return status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"


def settle(cloudformation: Any, platform: str, say: Callable[[str], None]) -> None:
    """Wait until CloudFormation changes no stack of a platform.

    CloudFormation goes on after an operator was killed, and refuses a change of such a stack until its end
    (CloudFormation User Guide, "Stack status codes"). Only one operator changes a platform at a time, so what
    still runs is what a killed one has begun.

    say: Called with a line for each stack, once.
    """
    said: set[str] = set()
    while changing := [
        each for each in deployed_stacks(cloudformation, platform) if is_changing(each.status)
    ]:
        for stack in changing:
            if stack.name not in said:
                said.add(stack.name)
                say(f"{stack.name} is {stack.status}: waits until CloudFormation has ended that")
        time.sleep(SETTLE_SECONDS)


def physical_ids(cloudformation: Any, stacks: Iterable[DeployedStack]) -> set[str]:
    """Return the physical ids of all resources of some stacks."""
    paginator = cloudformation.get_paginator("list_stack_resources")
    return {
        resource["PhysicalResourceId"]
        for stack in stacks
        for page in paginator.paginate(StackName=stack.stack_id)
        for resource in page["StackResourceSummaries"]
        if "PhysicalResourceId" in resource
    }


def stack_outputs(account: Account, stack: str, *needed: str) -> dict[str, str]:
    """Return the outputs of a deployed stack.

    needed: Outputs that it must have.
    Raises UserError if it is not deployed, was deployed by a release without these outputs, or AWS does not
        answer.
    """
    absent = UserError(f"{stack}: is not deployed in {account.region}; run `blueprints deploy` first")
    with readable_errors():
        try:
            [found] = account.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        except ClientError as error:
            if "does not exist" in describe_error(error):
                raise absent from error
            raise
    outputs = {each["OutputKey"]: str(each["OutputValue"]) for each in found.get("Outputs", [])}
    if not outputs.keys() >= set(needed):
        raise absent
    return outputs
