"""Acknowledges findings of cdk-nag. Each has its reason next to the code that causes it.

The rules are listed in https://github.com/cdklabs/cdk-nag/blob/main/RULES.md. A finding about IAM contains
the offending part in brackets, and each part is acknowledged separately.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import IConstruct


def acknowledge(scope: IConstruct, findings: Mapping[str, str]) -> None:
    """Accept findings of the AwsSolutions rules below a construct.

    scope: Construct that causes the findings. Everything below it is covered.
    findings: Reason by finding, such as ``SQS3`` or ``IAM5[Resource::*]``.
    """
    # Without the feature flag `enablePartitionLiterals`, an ARN of a policy holds a reference.
    resolved = cdk.Stack.of(scope).resolve(list(findings))
    cdk.Validations.of(scope).acknowledge(
        *(
            cdk.Acknowledgment(id=f"AwsSolutions::AwsSolutions-{_shown(finding)}", reason=reason)
            for finding, reason in zip(resolved, findings.values(), strict=True)
        )
    )


def acknowledge_managed_policies(scope: IConstruct, policies: Iterable[str], reason: str) -> None:
    """Accept managed policies of AWS below a construct.

    Parameters
    ----------
    scope
        Construct that has the roles.
    policies
        ARNs of the policies, as in the template.
    reason
        Reason why they are needed.
    """
    acknowledge(scope, {f"IAM4[Policy::{policy}]": reason for policy in policies})


def managed_policy(name: str) -> str:
    """Return the ARN of a policy of AWS as cdk-nag spells it in a role of aws-cdk-lib's L2 construct."""
    return f"arn:<AWS::Partition>:iam::aws:policy/{name}"


def acknowledge_wildcards(scope: IConstruct, statements: Iterable[Mapping[str, Any]], reason: str) -> None:
    """Accept the wildcards of these statements below a construct, and no others.

    scope: Construct whose policies hold them.
    statements: Statements of IAM policy documents.
    reason: Why they are needed.
    """
    wildcards = [
        (element, value)
        for statement in statements
        for element in ("Action", "Resource")
        for value in _strings(statement[element])
        if "*" in value
    ]
    resolved = cdk.Stack.of(scope).resolve([value for _, value in wildcards])
    findings = {
        f"IAM5[{element}::{_shown(value)}]" for (element, _), value in zip(wildcards, resolved, strict=True)
    }
    acknowledge(scope, dict.fromkeys(sorted(findings), reason))


def acknowledge_grants(scope: IConstruct, grants: Iterable[iam.Grant], reason: str) -> None:
    """Accept the wildcards of these grants below a construct, and no others.

    Parameters
    ----------
    scope
        Construct whose policies hold the grants.
    grants
        The grants.
    reason
        Why the wildcards are needed.
    """
    statements = [
        statement.to_statement_json() for grant in grants for statement in grant.principal_statements
    ]
    acknowledge_wildcards(scope, statements, reason)


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
