"""Roles that running executions of a state machine still use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inference_blueprints.catalog.cloudformation_types import cloudformation_types, value_at
from inference_blueprints.deployment.aws.account import readable_errors
from inference_blueprints.deployment.changes.findings import Finding, Held
from inference_blueprints.deployment.changes.platform_change import PlatformChange

CHECK = "running jobs"
_ROLE = "AWS::IAM::Role"
_STATE_MACHINE = "AWS::StepFunctions::StateMachine"


def running_jobs(change: PlatformChange) -> Iterator[Finding]:
    """Keep the roles of a stack as long as one of its executions runs.

    "Running executions will continue to use the previous definition and roleArn" (Step Functions API
    Reference, UpdateStateMachine). A role that is replaced is deleted at the end of the update, and the
    next step of the execution would fail. The other roles of the stack are kept, too: pods and functions
    that still work with a deleted one would be denied.
    """
    for stack in change.deployed:
        kept = {
            logical_id: before
            for name, logical_id, old, new in change.changed_resources()
            if name == stack
            and new["Type"] == _ROLE
            and (before := _fixed(old.get("Properties", {}))) != _fixed(new.get("Properties", {}))
        }
        running = _running(change, stack) if kept else 0
        if running:
            jobs = "1 job runs" if running == 1 else f"{running} jobs run"
            message = f"{jobs}, so {len(kept)} roles stay; deploy again after the end to move them"
            yield Held(CHECK, stack, message, partial(_keep, kept))


def _fixed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a role that cannot change."""
    return {path: value_at(properties, path) for path in cloudformation_types()[_ROLE].create_only}


def _running(change: PlatformChange, stack: str) -> int:
    """Return the number of executions that run, at most 100 per state machine."""
    resources = change.deployed[stack]["Resources"]
    machines = [
        arn
        for logical_id, arn in change.physical_ids(stack).items()
        if resources.get(logical_id, {}).get("Type") == _STATE_MACHINE
        # Executions of express workflows are not listed, and end after five minutes.
        and resources[logical_id]["Properties"].get("StateMachineType") != "EXPRESS"
    ]
    states = change.account.client("stepfunctions")
    with readable_errors():
        return sum(
            len(states.list_executions(stateMachineArn=arn, statusFilter="RUNNING")["executions"])
            for arn in machines
        )


def _keep(kept: Mapping[str, Mapping[str, Any]], template: dict[str, Any]) -> None:
    for logical_id, fixed in kept.items():
        properties = template["Resources"][logical_id]["Properties"]
        for path, value in fixed.items():
            if value is None:
                properties.pop(path, None)
            else:
                properties[path] = value
