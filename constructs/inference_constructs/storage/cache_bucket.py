"""A bucket of what can be computed again, and the rights of the pods that fill it."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_constructs.eks.pod_identity import Statement
from inference_constructs.findings import acknowledge
from inference_constructs.serving.weights_identity import s3_context, use_key


class CacheBucket(s3.Bucket):
    """A private bucket under a customer's key whose objects expire, and which goes with its stack.

    Parameters
    ----------
    encryption_key
        Key of every object.
    expire_days
        Days after which an object is deleted.
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
        acknowledge(
            self, {"S1": "Every prompt reads and writes many objects: a log of it would outgrow the cache."}
        )

    def use_statements(self) -> list[Statement]:
        """Return the rights to look for, read, write and delete objects, and to use their key for that."""
        stack = cdk.Stack.of(self)
        return [
            # Without it S3 says of an object that is missing that it is forbidden.
            {
                "Sid": "ListCache",
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": self.bucket_arn,
            },
            {
                "Sid": "UseCache",
                "Effect": "Allow",
                "Action": ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
                "Resource": f"{self.bucket_arn}/*",
            },
            use_key(
                stack,
                "EncryptCache",
                "s3",
                ["kms:Decrypt", "kms:GenerateDataKey"],
                s3_context(self.bucket_arn, ""),
            ),
        ]
