"""What a change does to jobs that run."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inference_blueprints.operate.aws.account import readable_errors
from inference_blueprints.operate.changes.platform_change import (
    REFERENCE,
    Finding,
    Held,
    PlatformChange,
    listed,
    spelled,
    stack_outputs_of,
)
from inference_blueprints.operate.check_results import CheckResult
from inference_catalog.cloudformation_types import cloudformation_types, value_at

RUNNING_JOBS_CHECK = "running jobs"
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
        yield CheckResult(RUNNING_JOBS_CHECK, "warning", message)
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
            yield CheckResult(RUNNING_JOBS_CHECK, "error", message)
            continue
        message = f"{runs}, so this stack stays as it is; deploy again after the end"
        yield Held(RUNNING_JOBS_CHECK, stack, message, partial(_keep, change.deployed[stack]))


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


# Streaming jobs that a deployment gives another size.

RESIZED_JOBS_CHECK = "streaming jobs"
_APPLICATION = "AWS::KinesisAnalyticsV2::Application"
_SIZE = "ApplicationConfiguration.FlinkApplicationConfiguration.ParallelismConfiguration"


def resized_jobs(change: PlatformChange) -> Iterator[Finding]:
    """Tell which jobs restart with more or fewer KPUs: a new release of this library may size them anew.

    Source: Managed Service for Apache Flink Developer Guide, "Application scaling": an update of the
    parallelism restarts the job from a snapshot.
    """
    for stack, logical_id, old, new in change.changed_resources():
        if new["Type"] != _APPLICATION:
            continue
        before, after = _kpus(old["Properties"]), _kpus(new["Properties"])
        if None in (before, after) or before == after:
            continue
        name = new["Properties"].get("ApplicationName", logical_id)
        message = f"{stack}: {name} restarts from a snapshot with {after} KPUs instead of {before}"
        yield CheckResult(RESIZED_JOBS_CHECK, "warning", message)


def _kpus(properties: Mapping[str, Any]) -> int | None:
    """Return the KPUs at the start of a job; None if AWS chooses them."""
    size = value_at(properties, _SIZE) or {}
    subtasks, per_kpu = size.get("Parallelism"), size.get("ParallelismPerKPU")
    if not isinstance(subtasks, int) or not isinstance(per_kpu, int):
        return None
    return math.ceil(subtasks / per_kpu)


# New denials in the policy of a bucket that would hit roles which still run.

DENIED_ROLES_CHECK = "bucket policies"
_POLICY = "AWS::S3::BucketPolicy"

_EXEMPTING = ("ArnNotLike", "ArnNotEquals", "StringNotLike", "StringNotEquals")


def denied_roles(change: PlatformChange) -> Iterator[Finding]:
    """Leave out a denial until the roles that it exempts have the path that it names.

    A denial in a bucket's policy counts at once for every principal, and no permission is stronger (IAM User
    Guide, "Policy evaluation logic"). The stack of the bucket is deployed before those of the roles. A role
    moves to another path by replacement, so until then the old one runs.
    """
    moving = _moving_roles(change)
    for stack, logical_id, old, new in change.changed_resources():
        if new["Type"] != _POLICY:
            continue
        before = _denials(old)
        early = [
            statement
            for statement in _denials(new)
            if statement not in before and any(_hits(statement, *paths) for paths in moving)
        ]
        if early:
            message = f"{logical_id} denies nothing new before roles of batch have moved to their path"
            yield Held(DENIED_ROLES_CHECK, stack, message, partial(_without, logical_id, early, before))


def _moving_roles(change: PlatformChange) -> set[tuple[str, str]]:
    """Return the old and new path of roles that move."""
    paths = {
        (_path(old), _path(new)) for _, _, old, new in change.changed_resources() if new["Type"] == _ROLE
    }
    return {(old, new) for old, new in paths if old != new}


def _path(role: Mapping[str, Any]) -> str:
    return spelled(role.get("Properties", {}).get("Path", "/"))


def _denials(policy: Mapping[str, Any]) -> list[dict[str, Any]]:
    statements = listed(policy["Properties"]["PolicyDocument"]["Statement"])
    return [statement for statement in statements if statement["Effect"] == "Deny"]


def _hits(statement: Mapping[str, Any], old: str, new: str) -> bool:
    """Whether a denial exempts a role with its new path, but not with its old one."""
    conditions = statement.get("Condition", {})
    patterns = [
        spelled(pattern).replace(REFERENCE, "*")
        for operator in _EXEMPTING
        for pattern in listed(conditions.get(operator, {}).get("aws:PrincipalArn", []))
    ]
    arns = [f"arn:aws:iam::*:role{path}NAME" for path in (old, new)]
    was_exempt, is_exempt = (any(fnmatch.fnmatchcase(arn, each) for each in patterns) for arn in arns)
    return is_exempt and not was_exempt


def _without(
    logical_id: str, early: list[dict[str, Any]], before: list[dict[str, Any]], template: dict[str, Any]
) -> None:
    """Take denials out, and keep those that are deployed."""
    document = template["Resources"][logical_id]["Properties"]["PolicyDocument"]
    statements = [each for each in listed(document["Statement"]) if each not in early]
    document["Statement"] = [*statements, *(each for each in before if each not in statements)]
