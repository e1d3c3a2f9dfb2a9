"""Stacks in a state in which CloudFormation refuses an update."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.operate.aws.account import readable_errors
from inference_blueprints.operate.changes.findings import Finding
from inference_blueprints.operate.changes.platform_change import FAILED_CREATIONS, PlatformChange
from inference_blueprints.operate.check_results import CheckResult

CHECK = "stacks"


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
    return CheckResult(CHECK, "error", message, f"{command} --region {change.account.region}")
