"""What to do about the usual reasons for which a deployment fails."""

from __future__ import annotations

import re

#: Words of AWS, Helm or the CDK (a regular expression), and what mends it. The first that fits is given.
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
        "ask for a higher quota; `blueprints doctor {name}` shows which, and the command that asks for it",
    ),
    (
        r"InsufficientInstanceCapacity|Insufficient capacity",
        "AWS has no such instance there now: add instance types or zones to the pool, or reserve capacity",
    ),
    (
        r"not authorized to perform|AccessDenied|UnauthorizedOperation",
        "the role that deploys lacks this right: have it granted, then deploy again",
    ),
    (
        r"another operation \(install/upgrade/rollback\) is in progress",
        "a release is stuck half-way: take its model out, deploy, put it in again and deploy",
    ),
    (
        r"already exists",
        "something of this name is not the stack's: remove it or rename the platform, then deploy again",
    ),
    (
        r"ROLLBACK_COMPLETE|ROLLBACK_FAILED|DELETE_FAILED",
        "the stack is left from a deployment that failed: `blueprints destroy {name}` removes it",
    ),
    (
        r"_IN_PROGRESS",
        "another deployment is under way: wait for its end, then deploy again",
    ),
    (
        r"unknown field|field not declared in schema|strict decoding error|no matches for kind",
        "the cluster refuses the object: its definitions are of another version than this library's",
    ),
    (
        r"timed out|exceeded timeout|context deadline exceeded",
        "look at the pods of that release with kubectl; when they are well, deploy again",
    ),
)


def advice(reason: str, name_or_path: str) -> str | None:
    """Return what a user can do about a failure.

    Parameters
    ----------
    reason
        What AWS, Helm or the CDK said.
    name_or_path
        The blueprint, for commands.

    Returns
    -------
    str or None
        None where the reason has to speak for itself.
    """
    for pattern, what_to_do in _ADVICE:
        if re.search(pattern, reason, re.IGNORECASE):
            return what_to_do.format(name=name_or_path)
    return None
