"""Names of those who call: the role behind a session is what teams are made of.

An ARN of a session names the role without its path (`arn:aws:sts::1:assumed-role/Role/session`); names of
roles are unique within an account whatever their paths are, so the name is enough
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

#: What a team's principals may be.
ALLOWED: Final = "the ARN of an IAM role or an IAM user"


def canonical(arn: str) -> str | None:
    """Return the one ARN, without path and session, by which a role or user is known; None for any other.

    Parameters
    ----------
    arn
        ARN of a role, of a session of it, or of a user.
    """
    for pattern, kind in ((_ROLE, "role"), (_SESSION, "role"), (_USER, "user")):
        match = pattern.fullmatch(arn)
        if match:
            return f"arn:{match['partition']}:iam::{match['account']}:{kind}/{match['name']}"
    return None
