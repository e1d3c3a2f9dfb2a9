"""Advice for the usual reasons of a failed deployment."""

from __future__ import annotations

import re

#: Pattern of an error message of AWS, Helm or the CDK, and what to do. The first match counts.
_ADVICE = (
    (
        r"has (it|the environment) been bootstrapped|/cdk-bootstrap/\S+ not found|bootstrap stack version",
        "run `blueprints bootstrap {name}` and deploy again",
    ),
    (
        r"credentials|ExpiredToken|security token .* (expired|invalid)|InvalidClientTokenId",
        "sign in to the blueprint's account and deploy again; `blueprints doctor {name}` checks it",
    ),
    (
        r"terminal \(TTY\) is not attached",
        "deploy from a terminal to approve the change, or add --require-approval never",
    ),
    (
        r"VcpuLimitExceeded|LimitExceeded|quota|limit (has been|was) (reached|exceeded)|TooMany\w+",
        "request a higher quota; `blueprints doctor {name}` shows which one, and the command",
    ),
    (
        r"InsufficientInstanceCapacity|Insufficient capacity",
        "AWS has no free instance there now: add instance types or zones to the pool, or reserve capacity",
    ),
    (
        r"not authorized to perform|AccessDenied|UnauthorizedOperation",
        "add this permission to the role that deploys, then deploy again",
    ),
    (
        r"another operation \(install/upgrade/rollback\) is in progress",
        "a Helm release is stuck: remove its model from the blueprint, deploy, add it and deploy again",
    ),
    (
        r"already exists",
        "another resource has this name: delete it or rename the platform, then deploy again",
    ),
    (
        r"ROLLBACK_COMPLETE|ROLLBACK_FAILED|DELETE_FAILED",
        "the stack is left from a failed deployment: `blueprints destroy {name}` deletes it",
    ),
    (
        r"_IN_PROGRESS",
        "another deployment is running: wait for its end, then deploy again",
    ),
    (
        r"unknown field|field not declared in schema|strict decoding error|no matches for kind",
        "the cluster has a different version of this resource definition than this library expects",
    ),
    (
        r"timed out|exceeded timeout|context deadline exceeded",
        "check the pods of that release with kubectl; when they are ready, deploy again",
    ),
)


def advice(reason: str, name_or_path: str) -> str | None:
    """Return what a user can do about a failure.

    reason: Error message of AWS, Helm or the CDK.
    name_or_path: The blueprint, for commands.
    Returns: None if no pattern matches.
    """
    for pattern, what_to_do in _ADVICE:
        if re.search(pattern, reason, re.IGNORECASE):
            return what_to_do.format(name=name_or_path)
    return None
