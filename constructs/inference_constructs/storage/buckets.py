"""The buckets of a platform: logs, its own data, and data that can be computed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_constructs.findings import acknowledge
from inference_constructs.serving.weights_permissions import s3_context


class LogBucket(s3.Bucket):
    """A bucket for logs of other resources.

    It is encrypted with S3 managed keys, because load balancers cannot write logs under a customer managed
    key (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/enable-access-logging.html).

    Parameters
    ----------
    retain
        Whether the bucket outlives its stack.
    expiration_days
        Days after which logs are deleted.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, retain: bool = True, expiration_days: int = 365
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[s3.LifecycleRule(expiration=cdk.Duration.days(expiration_days))],
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_PREFERRED,
            removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
            auto_delete_objects=not retain,
        )
        acknowledge(self, {"S1": "A log bucket that logs its own access would create new logs without end."})


class _KeyBucket(s3.Bucket):
    """A private bucket whose objects have a customer managed key.

    encryption_key: KMS key of every object.
    retain: Whether the bucket outlives its stack; otherwise its objects are deleted with it.
    log_bucket: Bucket of the access logs; None without them.
    versioned: Whether replaced and deleted objects are kept.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        encryption_key: kms.IKey,
        lifecycle_rules: Sequence[s3.LifecycleRule],
        retain: bool,
        log_bucket: s3.IBucket | None = None,
        versioned: bool = False,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            bucket_key_enabled=True,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=encryption_key,
            enforce_ssl=True,
            lifecycle_rules=lifecycle_rules,
            removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
            auto_delete_objects=not retain,
            server_access_logs_bucket=log_bucket,
            server_access_logs_prefix=f"s3/{construct_id.lower()}/" if log_bucket else None,
            versioned=versioned,
        )
        self._key = encryption_key


class DataBucket(_KeyBucket):
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
            encryption_key=encryption_key,
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
            retain=retain,
            log_bucket=log_bucket,
            versioned=True,
        )
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


class CacheBucket(_KeyBucket):
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
            encryption_key=encryption_key,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(1),
                    expiration=cdk.Duration.days(expire_days),
                )
            ],
            retain=False,
        )
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
