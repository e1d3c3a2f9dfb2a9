"""What teams reach: permissions to read their own inputs, and denials in the policy of the batch bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from inference_constructs.serving.weights_permissions import bucket_and_prefix, s3_context
from inference_contracts.batch_keys import FILES_PREFIX, JOBS_PREFIX, UPLOADS_PREFIX


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


#: CDK's function that empties a bucket before it is deleted.
_EMPTIES = "Custom::S3AutoDeleteObjectsCustomResourceProvider"


def isolate_teams(
    bucket: s3.Bucket, *, teams: Mapping[str, Sequence[str]], queues: Sequence[str], role_path: str
) -> None:
    """Deny access to the objects of teams and jobs, also to roles whose own policies allow all of S3.

    An allowing statement in another policy of the account cannot weaken an explicit denial
    (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html). The
    statements deny by ``aws:PrincipalArn``, which AWS recommends instead of ``NotPrincipal``
    (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_notprincipal.html). For a
    session, this key has the ARN of the role, with its path
    (https://docs.aws.amazon.com/singlesignon/latest/userguide/referencingpermissionsets.html).

    The account's administrators can still change the policy. The root user always can
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketPolicy.html).

    Parameters
    ----------
    bucket
        The batch bucket.
    teams
        ARNs of the IAM roles and users of each team, by its name.
    queues
        Names of the queues. Manifests are below ``<queue>/<team>/``.
    role_path
        IAM path of the roles that run jobs. They alone read and write the objects of jobs.
    """
    stack = cdk.Stack.of(bucket)
    runs_jobs = [f"arn:{stack.partition}:iam::{stack.account}:role{role_path}*", *roles_that_empty(stack)]
    for name, principals in teams.items():
        keys = [f"{queue}/{name}/*" for queue in queues]
        bucket.add_to_resource_policy(
            _denial(
                [bucket.arn_for_objects(each) for each in keys],
                {"ArnNotLike": {"aws:PrincipalArn": [*principals, *runs_jobs]}},
            )
        )
    prefixes = (JOBS_PREFIX, FILES_PREFIX, UPLOADS_PREFIX)
    bucket.add_to_resource_policy(
        _denial(
            [bucket.arn_for_objects(f"{each}*") for each in prefixes],
            {"ArnNotLike": {"aws:PrincipalArn": runs_jobs}},
        )
    )
    # Otherwise a team whose roles may use all of S3 could change this policy, or copy the bucket elsewhere.
    everybody = [arn for principals in teams.values() for arn in principals]
    bucket.add_to_resource_policy(_denial([bucket.bucket_arn], {"ArnLike": {"aws:PrincipalArn": everybody}}))


def _denial(
    resources: Sequence[str], conditions: Mapping[str, Mapping[str, Sequence[str]]]
) -> iam.PolicyStatement:
    """Return a statement that denies everything on the resources under the conditions."""
    return iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=["s3:*"],
        principals=[iam.AnyPrincipal()],
        resources=list(resources),
        conditions=conditions,
    )


def roles_that_empty(stack: cdk.Stack) -> Iterator[str]:
    """Yield the ARN of the role of CDK's function that empties buckets, if the stack has it."""
    provider = stack.node.try_find_child(_EMPTIES)
    if provider:
        yield cast(cdk.CfnResource, provider.node.find_child("Role")).get_att("Arn").to_string()
