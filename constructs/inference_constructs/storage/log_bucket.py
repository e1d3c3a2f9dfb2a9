"""The bucket for access and flow logs."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_constructs.findings import acknowledge


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
