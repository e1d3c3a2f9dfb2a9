"""IAM principals of callers: a team is a set of roles and users, and a session counts as its role.

The ARN of a session names the role without its path (`arn:aws:sts::1:assumed-role/Role/session`). Role names
are unique within an account, regardless of their paths, so the name is enough
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html).
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = r"[\w+=,.@-]{1,64}"
_PARTITION: Final = r"(?P<partition>aws[a-z-]*)"
_ROLE: Final = re.compile(
    rf"arn:{_PARTITION}:iam::(?P<account>\d{{12}}):role/(?:[^/]+/)*(?P<name>{_NAME})", re.ASCII
)
_SESSION: Final = re.compile(
    rf"arn:{_PARTITION}:sts::(?P<account>\d{{12}}):assumed-role/(?P<name>{_NAME})/[^/]+", re.ASCII
)
_USER: Final = re.compile(
    rf"arn:{_PARTITION}:iam::(?P<account>\d{{12}}):user/(?:[^/]+/)*(?P<name>{_NAME})", re.ASCII
)

#: The principals that a team may have.
ALLOWED: Final = "the ARN of an IAM role or an IAM user"


def canonical(arn: str) -> str | None:
    """Return the canonical ARN of a role or user, without path and session; None for any other ARN.

    arn: ARN of a role, of a session of it, or of a user.
    """
    for pattern, kind in ((_ROLE, "role"), (_SESSION, "role"), (_USER, "user")):
        match = pattern.fullmatch(arn)
        if match:
            return f"arn:{match['partition']}:iam::{match['account']}:{kind}/{match['name']}"
    return None
