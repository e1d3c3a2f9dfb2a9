"""No policy says more than it has to: every wildcard of every template is listed here with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed, statements, text

EC2_STARTS = "RunInstances|CreateFleet|CreateLaunchTemplate|CreateTags"
EC2_ENDS = "TerminateInstances|DeleteLaunchTemplate"
PROFILE = r"arn:aws:iam::.+:instance-profile/\*"
BUCKET = r"\$\{(Logs|Weights)\w+\.Arn\}"
TARGETS = "arn:aws:elasticloadbalancing:.+:targetgroup"

#: Reason → stack and patterns of ``action on resource``.
REASONS: dict[str, list[tuple[str, str]]] = {
    "the resources do not exist yet; a condition bounds them to the cluster's tags": [
        ("Cluster", rf"ec2:({EC2_STARTS}) on arn:aws:ec2:.+/\*"),
        ("Cluster", rf"ec2:({EC2_ENDS}) on arn:aws:ec2:.+/\*"),
        ("Cluster", rf"iam:\w+InstanceProfile on {PROFILE}"),
        ("Platform", rf"elasticloadbalancing:\w+Targets on {TARGETS}/\*"),
    ],
    "the calls know no resources; a condition bounds them to the region or the cluster": [
        ("Cluster", r"(ec2:Describe\w+|arc-zonal-shift:GetManagedResource) on \*"),
        ("Platform", r"(ec2|elasticloadbalancing):Describe\w+ on \*"),
    ],
    "public parameters and prices, and a listing that knows no resources": [
        ("Cluster", r"pricing:GetProducts on \*"),
        ("Cluster", r"ssm:GetParameter on arn:aws:ssm:us-west-2::parameter/aws/service/\*"),
        ("Cluster", r"iam:ListInstanceProfiles on \*"),
    ],
    "objects have no names beforehand; the bucket or the prefix bounds them": [
        ("Cluster", r"s3:GetObject on arn:aws:s3:::cdk-hnb659fds-assets-.+/\*\.zip"),
        ("Data", rf"s3:\w+ on {BUCKET}.*\*"),
        ("Data", rf"s3:(GetBucket|List|DeleteObject)\* on {BUCKET}.*"),
        ("Model", r"s3:GetObject on arn:aws:s3:::acme-models/qwen3-8b/\*"),
    ],
    "whatever key the owner chose; the encryption context bounds it to the objects or the secret": [
        ("Model", r"kms:Decrypt on arn:aws:kms:us-west-2:.+:key/\*"),
    ],
    "a key policy that leaves the decision to the account's policies; the resource is the key itself": [
        ("Data", r"kms:\* on \*"),
    ],
    "versions of one function": [
        ("Cluster", r"lambda:\w+ on \$\{Cluster\w+\.Arn\}:\*"),
    ],
}
ALLOWED = [each for group in REASONS.values() for each in group]


def weights_in_s3(spec: dict[str, Any]) -> None:
    spec["models"][0]["weights"] = {"s3": "s3://acme-models/qwen3-8b/", "catalog": "Qwen/Qwen3-8B"}


def gated(spec: dict[str, Any]) -> None:
    arn = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"
    spec["models"][0]["weights"]["tokenSecretArn"] = arn


def destroyed(spec: dict[str, Any]) -> None:
    spec["environment"]["dataRemoval"] = "destroy"


@pytest.mark.parametrize("change", [None, weights_in_s3, gated, destroyed])
def test_every_wildcard_has_a_reason(synthesise: Synthesise, change: Any) -> None:
    assert [grant for stack, grant in _wildcards(synthesise(change)) if not _is_allowed(stack, grant)] == []


def test_every_reason_is_still_needed(synthesise: Synthesise) -> None:
    changes = (None, weights_in_s3, gated, destroyed)
    found = {each for change in changes for each in _wildcards(synthesise(change))}
    unused = [
        (stack, pattern)
        for stack, pattern in ALLOWED
        if not any(where.startswith(stack) and re.fullmatch(pattern, grant) for where, grant in found)
    ]
    assert unused == []


def test_nothing_is_allowed_to_everybody(base_templates: Templates) -> None:
    for template in base_templates.by_stack.values():
        for resource in template["Resources"].values():
            for statement in statements(resource):
                principal = statement.get("Principal")
                assert statement["Effect"] == "Deny" or principal not in ("*", {"AWS": "*"}), statement


def test_unscoped_reads_are_bound_to_the_region(base_templates: Templates) -> None:
    described = [
        statement
        for template in base_templates.by_stack.values()
        for resource in template["Resources"].values()
        for statement in statements(resource)
        if any(":Describe" in action for action in listed(statement["Action"]))
        and statement["Resource"] == "*"
    ]
    assert len(described) == 2
    for statement in described:
        assert statement["Condition"] == {"StringEquals": {"aws:RequestedRegion": "us-west-2"}}


def _wildcards(templates: Templates) -> Iterator[tuple[str, str]]:
    """Stack, and ``action on resource`` for each grant with a wildcard in either."""
    for stack, template in templates.by_stack.items():
        for resource in template["Resources"].values():
            for statement in statements(resource):
                if statement["Effect"] == "Allow":
                    for action in listed(statement["Action"]):
                        for target in map(text, listed(statement["Resource"])):
                            if "*" in action or "*" in target:
                                yield stack, f"{action} on {target}"


def _is_allowed(stack: str, grant: str) -> bool:
    return any(stack.startswith(where) and re.fullmatch(pattern, grant) for where, pattern in ALLOWED)
