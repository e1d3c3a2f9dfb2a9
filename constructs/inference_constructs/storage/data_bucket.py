"""A bucket for the platform's own data."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct


class DataBucket(s3.Bucket):
    """A private, versioned bucket under a customer's key, with access logs.

    Parameters
    ----------
    encryption_key
        Key of every object.
    log_bucket
        Where access is logged.
    retain
        Whether the bucket outlives its stack; otherwise its objects are deleted with it.
    sends_events
        Whether EventBridge is told of new objects.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        encryption_key: kms.IKey,
        log_bucket: s3.IBucket,
        retain: bool,
        sends_events: bool = False,
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
                    noncurrent_version_expiration=cdk.Duration.days(30),
                )
            ],
            removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
            auto_delete_objects=not retain,
            server_access_logs_bucket=log_bucket,
            server_access_logs_prefix=f"s3/{construct_id.lower()}/",
            versioned=True,
        )
        if sends_events:
            # The construct's own property brings a function that writes it.
            cast(s3.CfnBucket, self.node.default_child).add_property_override(
                "NotificationConfiguration.EventBridgeConfiguration.EventBridgeEnabled", value=True
            )
