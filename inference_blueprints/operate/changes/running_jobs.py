"""Jobs that run with roles which an upgrade would replace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inference_blueprints.operate.aws.account import readable_errors
from inference_blueprints.operate.changes.findings import Finding, Held
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.changes.template_values import stack_outputs_of
from inference_blueprints.operate.check_results import CheckResult
from inference_catalog.cloudformation_types import cloudformation_types

CHECK = "running jobs"
_ROLE = "AWS::IAM::Role"
_STATE_MACHINE = "AWS::StepFunctions::StateMachine"


def running_jobs(change: PlatformChange) -> Iterator[Finding]:
    """Leave a stack as it is while one of its executions runs with a role that would be replaced.

    "Running executions will continue to use the previous definition and roleArn" (Step Functions API
    Reference, UpdateStateMachine). CloudFormation deletes a replaced role at the end of the update, and the
    next step of the execution would fail. The same holds for pods that have credentials of such a role.
    """
    kept = kept_stacks(change)
    for stack in sorted(_moving(change) - kept.keys()):
        message = f"{stack}: roles are replaced; submit no job until the end, or redrive it if it fails"
        yield CheckResult(CHECK, "warning", message)
    for stack, jobs in kept.items():
        runs = "1 job runs" if jobs == 1 else f"{jobs} jobs run"
        missing = sorted(
            {
                output
                for name, template in change.new.items()
                for owner, output in stack_outputs_of(template.get("Resources", {}))
                if owner == stack
                and name != stack
                and output not in change.deployed[stack].get("Outputs", {})
            }
        )
        if missing:
            message = (
                f"{stack}: {runs}, and other stacks need {', '.join(missing)} of it; deploy after the end"
            )
            yield CheckResult(CHECK, "error", message)
            continue
        message = f"{runs}, so this stack stays as it is; deploy again after the end"
        yield Held(CHECK, stack, message, partial(_keep, change.deployed[stack]))


def kept_stacks(change: PlatformChange) -> Mapping[str, int]:
    """Return the stacks that stay as they are, with the number of their running executions."""
    running = {stack: _running(change, stack) for stack in sorted(_moving(change))}
    return {stack: jobs for stack, jobs in running.items() if jobs}


def _moving(change: PlatformChange) -> set[str]:
    """Return the stacks with a state machine in which roles are replaced."""
    role = cloudformation_types()[_ROLE]
    return {
        stack
        for stack, _, old, new in change.changed_resources()
        if new["Type"] == _ROLE
        and role.replaced_by(old.get("Properties", {}), new.get("Properties", {}))
        and any(each["Type"] == _STATE_MACHINE for each in change.deployed[stack]["Resources"].values())
    }


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


def _keep(deployed: Mapping[str, Any], template: dict[str, Any]) -> None:
    template.clear()
    template.update(deployed)
