"""Statements of IAM policy documents as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: A statement of an IAM policy document, as JSON.
Statement = Mapping[str, Any]


def policy_document(statements: Sequence[Statement]) -> dict[str, Any]:
    """Return an IAM policy document with these statements."""
    return {"Version": "2012-10-17", "Statement": [dict(statement) for statement in statements]}
