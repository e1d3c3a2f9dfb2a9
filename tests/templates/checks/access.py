"""Who may do what with the objects of batch, as the templates' policies decide it together.

The decisions are those of ministack's evaluator, which follows AWS: an explicit denial wins, then one
allowing statement in the policy of the principal or of the bucket is enough within an account
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ministack.core import iam_evaluator

from tests.templates.support import Templates, listed, statements, text

ACCOUNT: Final = "111122223333"
BUCKET: Final = "arn:aws:s3:::batch"
#: Name here of the role of KEDA, to which the stack grants the reading of its queues.
_OTHER_STACK: Final = "RoleOfAnotherStack"
#: A policy that gives its owner all of S3, as `AmazonS3FullAccess` does.
ALL_OF_S3: Final = {"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
#: The role of CDK's function that empties the bucket when the platform is destroyed.
EMPTIES: Final = f"arn:aws:iam::{ACCOUNT}:role/Empties"
_PLACEHOLDERS: Final = (
    (re.compile(r"\$\{CustomS3AutoDeleteObjectsCustomResourceProviderRole[0-9A-F]{8}\.Arn\}"), EMPTIES),
    (re.compile(r"arn:(\$\{AWS::Partition\}|aws):s3:::\$\{try-Data\.BatchBucketName\}"), BUCKET),
    (re.compile(r"\$\{Batch[0-9A-F]{8}\.Arn\}"), BUCKET),
    (re.compile(r"\$\{AWS::Partition\}"), "aws"),
    (re.compile(r"\$\{AWS::AccountId\}"), ACCOUNT),
)

Policy = dict[str, Any]


@dataclass(frozen=True)
class Policies:
    """The policy of the bucket, and those of the roles of the stack `Batch`, by ARN."""

    bucket: Policy
    roles: Mapping[str, Policy]

    def allow(self, principal: str, action: str, resource: str, own: Policy | None = None) -> bool:
        """Whether a principal may do something; `own` is its policy if the templates have none."""
        context = iam_evaluator.EvalContext(
            principal_arn=principal,
            principal_type="AssumedRole" if ":role/" in principal else "User",
            principal_account=ACCOUNT,
            action=action,
            resource_arn=resource,
            region="us-west-2",
            secure_transport=True,
        )
        document = own or self.roles.get(principal, {"Statement": []})
        identity = iam_evaluator.evaluate(context, [iam_evaluator.parse_policy_document(document)])
        both = iam_evaluator.combine_resource_policy(identity, context, self.bucket, ACCOUNT)
        return bool(both.decision == "Allow")


def policies_of(templates: Templates) -> Policies:
    """Read the policies of a platform that is called `try`."""
    data, batch = templates.by_stack["Data"]["Resources"], templates.by_stack["Batch"]["Resources"]
    [bucket] = [
        each["Properties"]["PolicyDocument"]
        for each in data.values()
        if each["Type"] == "AWS::S3::BucketPolicy" and "Batch" in each["Properties"]["Bucket"]["Ref"]
    ]
    own: dict[str, list[Any]] = {
        name: list(statements(each)) for name, each in batch.items() if each["Type"] == "AWS::IAM::Role"
    }
    for each in batch.values():
        if each["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
            for role in each["Properties"]["Roles"]:
                own.setdefault(role.get("Ref", _OTHER_STACK), []).extend(statements(each))
    return Policies(
        bucket=_filled(bucket),
        roles={
            f"arn:aws:iam::{ACCOUNT}:role{_path(batch.get(name))}{name}": _filled({"Statement": found})
            for name, found in own.items()
        },
    )


def _path(role: Any) -> str:
    return str(role["Properties"].get("Path", "/")) if role else "/"


def uses(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield each action on objects of the bucket that a policy allows, with a key that it allows it on."""
    for statement in policy["Statement"]:
        for resource in listed(statement["Resource"]):
            if statement["Effect"] == "Allow" and resource.startswith(f"{BUCKET}/"):
                yield from ((action, resource.replace("*", "x")) for action in listed(statement["Action"]))


def _filled(value: Any) -> Any:
    """Return a policy with its references spelled out."""
    if isinstance(value, Mapping) and not any(key == "Ref" or key.startswith("Fn::") for key in value):
        return {key: _filled(below) for key, below in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_filled(each) for each in value]
    spelled = text(value)
    for pattern, replacement in _PLACEHOLDERS:
        spelled = pattern.sub(replacement, spelled)
    return json.loads(spelled) if not isinstance(value, str | Mapping) else spelled
