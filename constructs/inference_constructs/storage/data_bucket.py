"""A bucket for the platform's own data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct


class DataBucket(s3.Bucket):
    """A private, versioned bucket under a customer managed key, with access logs.

    Parameters
    ----------
    encryption_key
        KMS key of every object.
    log_bucket
        Bucket of the access logs.
    retain
        Whether the bucket outlives its stack; otherwise its objects are deleted with it.
    sends_events
        Whether new objects produce EventBridge events.
    expire_days
        Age at which an object is deleted, in days, by prefix. Objects below no prefix are kept.
    noncurrent_days
        Days for which a replaced or deleted version is kept.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        encryption_key: kms.IKey,
        log_bucket: s3.IBucket,
        retain: bool = True,
        sends_events: bool = False,
        expire_days: Mapping[str, int] | None = None,
        noncurrent_days: int = 30,
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
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(7),
                    noncurrent_version_expiration=cdk.Duration.days(noncurrent_days),
                ),
                *(
                    s3.LifecycleRule(prefix=prefix, expiration=cdk.Duration.days(days))
                    for prefix, days in (expire_days or {}).items()
                ),
                # What remains of an object whose versions have all expired.
                *([s3.LifecycleRule(expired_object_delete_marker=True)] if expire_days else []),
            ],
            removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
            auto_delete_objects=not retain,
            server_access_logs_bucket=log_bucket,
            server_access_logs_prefix=f"s3/{construct_id.lower()}/",
            versioned=True,
        )
        self._key = encryption_key
        if sends_events:
            # CDK's own property would add a Lambda function that writes this setting.
            cast(s3.CfnBucket, self.node.default_child).add_property_override(
                "NotificationConfiguration.EventBridgeConfiguration.EventBridgeEnabled", value=True
            )

    def grant_upload(self, principals: Sequence[iam.IPrincipal], *, key_patterns: Sequence[str]) -> None:
        """Allow principals outside the platform to upload objects, and to use the key for this.

        The permissions are in the policies of the bucket and of its key, which must be in this account.
        ``s3.Bucket.grant_put`` would also allow retention, legal holds and tags.

        Parameters
        ----------
        principals
            Principals that may upload.
        key_patterns
            Patterns of the objects' keys, such as ``nightly/*``.
        """
        stack = cdk.Stack.of(self)
        self.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["s3:PutObject"],
                principals=list(principals),
                resources=[self.arn_for_objects(pattern) for pattern in key_patterns],
            )
        )
        self._key.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["kms:GenerateDataKey"],
                conditions={"StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"}},
                principals=list(principals),
                resources=["*"],
            )
        )
