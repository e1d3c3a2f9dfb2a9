"""Statements of IAM policy documents as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: A statement of an IAM policy document, as JSON.
Statement = Mapping[str, Any]

#: What an agent needs to open a session (AWS Systems Manager User Guide, "Create a custom IAM role for
#: Session Manager"). The managed policy AmazonSSMManagedInstanceCore would also read every parameter of the
#: account. The actions know no resources.
SESSIONS: Statement = {
    "Effect": "Allow",
    "Action": [
        "ssm:UpdateInstanceInformation",
        "ssmmessages:CreateControlChannel",
        "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel",
        "ssmmessages:OpenDataChannel",
    ],
    "Resource": "*",
}


def policy_document(statements: Sequence[Statement]) -> dict[str, Any]:
    """Return an IAM policy document with these statements."""
    return {"Version": "2012-10-17", "Statement": [dict(statement) for statement in statements]}
