"""Permissions to read the inputs and images of teams, in buckets that belong to the teams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from inference_constructs.serving.weights_permissions import bucket_and_prefix, s3_context


@dataclass(frozen=True)
class TeamInputs:
    """The S3 prefixes of all teams.

    Examples
    --------
    >>> TeamInputs(stack, ["s3://ads-data/prompts/"]).grant_read(role)  # doctest: +SKIP
    """

    stack: cdk.Stack
    """Stack of the roles that read them."""
    prefixes: Sequence[str]
    """``s3://bucket/folder/``."""

    def grant_read(self, grantee: iam.IGrantable) -> list[iam.Grant]:
        """Allow reading and decrypting the objects below the prefixes, and listing them.

        Without ``s3:ListBucket``, S3 answers 403 instead of 404 for an object that does not exist (Amazon S3
        API Reference, GetObject, Permissions). For that answer it compares ``s3:prefix`` with the key
        (ceph/ceph#68577).

        The key of a bucket is its owner's choice, and may belong to another account, whose key policy must
        then allow the role too (AWS KMS Developer Guide, "Allowing users in other accounts to use a KMS
        key"). The conditions bound its use to S3 in the platform's region and to the teams' buckets.

        Parameters
        ----------
        grantee
            Principal that gets the permissions.
        """
        places = sorted(bucket_and_prefix(self.stack, each) for each in self.prefixes)
        if not places:
            return []
        by_bucket = {
            bucket: [prefix for _, prefix in found]
            for bucket, found in groupby(places, key=lambda place: place[0])
        }
        stack = self.stack
        contexts = [s3_context(bucket, ["*"]) for bucket in by_bucket]
        key_arn = f"arn:{stack.partition}:kms:{stack.region}:*:key/*"
        return [
            iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["s3:GetObject"],
                resource_arns=[f"{bucket}/{prefix}*" for bucket, prefix in places],
            ),
            *(
                iam.Grant.add_to_principal(
                    grantee=grantee,
                    actions=["s3:ListBucket"],
                    resource_arns=[bucket],
                    conditions={"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in found]}},
                )
                for bucket, found in by_bucket.items()
            ),
            iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["kms:Decrypt"],
                resource_arns=[key_arn],
                conditions={
                    "StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"},
                    "StringLike": {
                        name: [arn for context in contexts for arn in context[name]] for name in contexts[0]
                    },
                },
            ),
        ]
