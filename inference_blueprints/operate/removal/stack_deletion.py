"""Deletes stacks and waits for the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from inference_blueprints.operate.cloudformation.deployed_stacks import DeployedStack
from inference_blueprints.operate.cloudformation.failure_advice import advice
from inference_contracts.errors import UserError

#: Seconds between two requests to CloudFormation.
POLL_SECONDS = 2.0
_NESTED_TYPE = "AWS::CloudFormation::Stack"


@dataclass(frozen=True, slots=True)
class Retained:
    """A resource that a deleted stack left behind because of its deletion policy."""

    stack: str
    resource_type: str
    physical_id: str
    """`resource_type`, `physical_id`: Such as ``AWS::S3::Bucket`` and the bucket's name."""


def delete_stacks(
    cloudformation: Any, stacks: Sequence[DeployedStack], *, blueprint: str, say: Callable[[str], None]
) -> list[Retained]:
    """Delete stacks at the same time, including protected ones.

    stacks: Stacks that do not depend on one another.
    blueprint: Name or path, for commands in messages.
    say: Called with a line at the start and the end of each deletion.
    Returns: Resources that CloudFormation kept.
    Raises UserError if a stack cannot be deleted, with the failed resources, the reasons and what to do.
    """
    busy = [f"{stack.name} is {stack.status}" for stack in stacks if _is_changing(stack.status)]
    if busy:
        raise UserError(f"{'; '.join(busy)}; wait until this operation ends, then run this command again")
    for stack in stacks:
        say(f"{stack.name}: deleting")
        cloudformation.update_termination_protection(
            EnableTerminationProtection=False, StackName=stack.stack_id
        )
        cloudformation.delete_stack(StackName=stack.stack_id)
    failures = [line for stack in stacks for line in _outcome(cloudformation, stack, say)]
    if failures:
        advices = dict.fromkeys(each for line in failures if (each := advice(line, blueprint)))
        raise UserError("\n".join([*failures, *(f"what to do: {each}" for each in advices)]))
    return [kept for stack in stacks for kept in _retained(cloudformation, stack)]


def _is_changing(status: str) -> bool:
    """Whether another operation changes the stack; a running deletion does not count."""
    return status.endswith("_IN_PROGRESS") and status not in {"DELETE_IN_PROGRESS", "REVIEW_IN_PROGRESS"}


def _outcome(cloudformation: Any, stack: DeployedStack, say: Callable[[str], None]) -> list[str]:
    """Wait for the end of a deletion and return the reasons if it failed."""
    while (status := _status(cloudformation, stack)) == "DELETE_IN_PROGRESS":
        time.sleep(POLL_SECONDS)
    if status == "DELETE_COMPLETE":
        say(f"{stack.name}: deleted")
        return []
    reasons = [
        f"{stack.name}: {event['ResourceType']} {event['LogicalResourceId']}: {event['ResourceStatusReason']}"
        for event in _newest_events(cloudformation, stack)
        if event["ResourceStatus"] == "DELETE_FAILED" and event["ResourceType"] != _NESTED_TYPE
    ]
    return reasons or [f"{stack.name}: is {status} and not deleted"]


def _status(cloudformation: Any, stack: DeployedStack) -> str:
    [description] = cloudformation.describe_stacks(StackName=stack.stack_id)["Stacks"]
    return str(description["StackStatus"])


def _newest_events(cloudformation: Any, stack: DeployedStack) -> Iterator[dict[str, Any]]:
    """Iterate over the events of the last deletion, the newest first."""
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack.stack_id)
    for event in _events(pages):
        yield event
        is_stack = event["PhysicalResourceId"] == stack.stack_id
        if is_stack and event["ResourceStatus"] == "DELETE_IN_PROGRESS":
            return


def _events(pages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for page in pages:
        yield from page["StackEvents"]


def _retained(cloudformation: Any, stack: DeployedStack) -> Iterator[Retained]:
    for event in _newest_events(cloudformation, stack):
        if event["ResourceStatus"] == "DELETE_SKIPPED":
            yield Retained(stack.name, event["ResourceType"], event["PhysicalResourceId"])
