"""A bucket of data that can be computed again, such as KV cache."""

from __future__ import annotations

from functools import reduce
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_constructs.findings import acknowledge
from inference_constructs.serving.weights_permissions import s3_context


class CacheBucket(s3.Bucket):
    """A private bucket under a customer managed key. Its objects expire, and it is deleted with its stack.

    Parameters
    ----------
    encryption_key
        KMS key of every object.
    expire_days
        Age at which an object is deleted, in days.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey, expire_days: int
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            bucket_key_enabled=True,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=encryption_key,
            enforce_ssl=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(1),
                    expiration=cdk.Duration.days(expire_days),
                )
            ],
            removal_policy=cdk.RemovalPolicy.DESTROY,
            auto_delete_objects=True,
        )
        self._key = encryption_key
        acknowledge(
            self, {"S1": "Each prompt reads and writes many objects. The log would be larger than the cache."}
        )

    def grant_read_write(self, identity: iam.IGrantable, objects_key_pattern: Any = None) -> iam.Grant:
        """Allow listing, reading, writing and deleting objects, and using their key through S3 only.

        The method of ``s3.Bucket`` would also allow legal holds, retention, tags and other uses of the key.

        Parameters
        ----------
        identity
            Role or pod identity that shares the cache.
        objects_key_pattern
            Pattern of the objects' keys; None for all objects.
        """
        stack = cdk.Stack.of(self)
        grants = [
            # Without this permission, S3 answers 403 for a missing object.
            iam.Grant.add_to_principal(
                grantee=identity, actions=["s3:ListBucket"], resource_arns=[self.bucket_arn]
            ),
            iam.Grant.add_to_principal(
                grantee=identity,
                actions=["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
                resource_arns=[self.arn_for_objects(str(objects_key_pattern or "*"))],
            ),
            iam.Grant.add_to_principal(
                grantee=identity,
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                conditions={
                    "StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"},
                    "StringLike": s3_context(self.bucket_arn, ["*"]),
                },
                resource_arns=[self._key.key_arn],
            ),
        ]
        return reduce(iam.Grant.combine, grants)
