"""Findings of cdk-nag that stand, each with its reason beside the code that causes it.

Rules are those of https://github.com/cdklabs/cdk-nag/blob/main/RULES.md. A finding about IAM has the
offending part in brackets, and each is acknowledged by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import aws_cdk as cdk
from constructs import IConstruct


def acknowledge(scope: IConstruct, findings: Mapping[str, str]) -> None:
    """Let findings of the AwsSolutions rules stand below a construct.

    Parameters
    ----------
    scope
        Construct that causes them; holds for everything below it.
    findings
        Reason by finding, such as ``SQS3`` or ``IAM5[Resource::*]``.
    """
    cdk.Validations.of(scope).acknowledge(
        *(
            cdk.Acknowledgment(id=f"AwsSolutions::AwsSolutions-{finding}", reason=reason)
            for finding, reason in findings.items()
        )
    )


def acknowledge_managed_policies(scope: IConstruct, policies: Iterable[str], reason: str) -> None:
    """Let policies that AWS maintains be attached below a construct.

    Parameters
    ----------
    scope
        Construct whose roles carry them.
    policies
        ARNs, in the words of the template.
    reason
        Why they may stand.
    """
    acknowledge(scope, {f"IAM4[Policy::{policy}]": reason for policy in policies})


def acknowledge_wildcards(scope: IConstruct, statements: Iterable[Mapping[str, Any]], reason: str) -> None:
    """Let the wildcards of these very statements stand below a construct, and no others.

    Parameters
    ----------
    scope
        Construct whose policies hold them.
    statements
        Statements of IAM policy documents.
    reason
        Why they may stand.
    """
    stack = cdk.Stack.of(scope)
    findings = {
        f"IAM5[{element}::{_shown(stack.resolve(value))}]"
        for statement in statements
        for element in ("Action", "Resource")
        for value in _strings(statement[element])
        if "*" in value
    }
    acknowledge(scope, dict.fromkeys(sorted(findings), reason))


def _shown(resolved: Any) -> str:
    """Spell a value as cdk-nag does: references in angle brackets, other functions as JSON."""
    match resolved:
        case str():
            return resolved
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [str() as name, str() as attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [str() as separator, list() as parts]}:
            return separator.join(_shown(part) for part in parts)
    return json.dumps(resolved, separators=(",", ":"))


def _strings(value: str | list[str]) -> Iterator[str]:
    """Iterate over one string or several."""
    yield from [value] if isinstance(value, str) else value
