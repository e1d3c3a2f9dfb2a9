"""Findings of cdk-nag that stand, each with its reason beside the code that causes it."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import IConstruct


def acknowledge(scope: IConstruct, findings: Mapping[str, str]) -> None:
    """Let findings of the AwsSolutions rules stand below a construct.

    Parameters
    ----------
    scope
        Construct that causes them; holds for everything below it.
    findings
        Reason by rule, such as ``IAM5[Resource::*]``; the rules are listed at
        https://github.com/cdklabs/cdk-nag/blob/main/RULES.md.
    """
    cdk.Validations.of(scope).acknowledge(
        *(
            cdk.Acknowledgment(id=f"AwsSolutions::AwsSolutions-{rule}", reason=reason)
            for rule, reason in findings.items()
        )
    )
