"""New denials in the policy of a bucket that would hit roles which still run."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inference_blueprints.operate.changes.findings import Finding, Held
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.changes.template_values import REFERENCE, listed, spelled

CHECK = "bucket policies"
_POLICY = "AWS::S3::BucketPolicy"
_ROLE = "AWS::IAM::Role"
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
            yield Held(CHECK, stack, message, partial(_without, logical_id, early, before))


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
