"""The way of usage records into their bucket: Amazon Data Firehose, which compresses and partitions them."""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_constructs.findings import acknowledge_grants
from inference_constructs.observability.kept_log_group import short_log
from inference_contracts.door_names import USAGE_DAY, USAGE_ERRORS_PREFIX, USAGE_PREFIX

#: Firehose writes an object after this time, or when it has this much, whichever is first. A day of one busy
#: platform then has some hundred objects per shard.
_SECONDS: Final = 60
_MEBIBYTES: Final = 64


class UsageStream(Construct):
    """A delivery stream of lines in JSON to one bucket, compressed and with a prefix per day.

    The day is that of the arrival, in UTC, which costs nothing; partitioning by a field of the records would
    be charged per GB and would write an object per value
    (https://docs.aws.amazon.com/firehose/latest/dev/s3-prefixes.html). Firehose keeps what it cannot deliver
    for 24 hours (https://docs.aws.amazon.com/firehose/latest/dev/retry.html).

    Parameters
    ----------
    bucket
        Bucket of the records.
    encryption_key
        KMS key of the records in the stream and in the bucket.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, bucket: s3.IBucket, encryption_key: kms.IKey
    ) -> None:
        super().__init__(scope, construct_id)
        log = short_log(self, "Log")
        lines = logs.LogStream(self, "Lines", log_group=log, removal_policy=cdk.RemovalPolicy.DESTROY)
        role = self._role(bucket, encryption_key, log)
        self._stream = firehose.CfnDeliveryStream(
            self,
            "Stream",
            delivery_stream_type="DirectPut",
            delivery_stream_encryption_configuration_input=(
                firehose.CfnDeliveryStream.DeliveryStreamEncryptionConfigurationInputProperty(
                    key_type="CUSTOMER_MANAGED_CMK", key_arn=encryption_key.key_arn
                )
            ),
            extended_s3_destination_configuration=(
                firehose.CfnDeliveryStream.ExtendedS3DestinationConfigurationProperty(
                    bucket_arn=bucket.bucket_arn,
                    buffering_hints=firehose.CfnDeliveryStream.BufferingHintsProperty(
                        interval_in_seconds=_SECONDS, size_in_m_bs=_MEBIBYTES
                    ),
                    cloud_watch_logging_options=firehose.CfnDeliveryStream.CloudWatchLoggingOptionsProperty(
                        enabled=True, log_group_name=log.log_group_name, log_stream_name=lines.log_stream_name
                    ),
                    compression_format="GZIP",
                    encryption_configuration=firehose.CfnDeliveryStream.EncryptionConfigurationProperty(
                        kms_encryption_config=firehose.CfnDeliveryStream.KMSEncryptionConfigProperty(
                            awskms_key_arn=encryption_key.key_arn
                        )
                    ),
                    error_output_prefix=f"{USAGE_ERRORS_PREFIX}!{{firehose:error-output-type}}/"
                    f"{USAGE_DAY}=!{{timestamp:yyyy-MM-dd}}/",
                    prefix=f"{USAGE_PREFIX}{USAGE_DAY}=!{{timestamp:yyyy-MM-dd}}/",
                    role_arn=role.role_arn,
                )
            ),
        )
        # Firehose checks the role's permissions when the stream is created.
        self._stream.node.add_dependency(role)

    @property
    def stream_name(self) -> str:
        """Name of the stream."""
        return self._stream.ref

    def grant_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow putting records.

        Parameters
        ----------
        grantee
            Role of the program that writes.
        """
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["firehose:PutRecordBatch"],
            resource_arns=[self._stream.attr_arn],
        )

    def _role(self, bucket: s3.IBucket, encryption_key: kms.IKey, log: logs.LogGroup) -> iam.Role:
        """Add the role of Firehose: it writes below its two prefixes, and its log.

        https://docs.aws.amazon.com/firehose/latest/dev/controlling-access.html
        """
        stack = cdk.Stack.of(self)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "firehose.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
            ),
        )
        written = iam.Grant.add_to_principal(
            grantee=role,
            actions=["s3:AbortMultipartUpload", "s3:PutObject"],
            resource_arns=[
                bucket.arn_for_objects(f"{prefix}*") for prefix in (USAGE_PREFIX, USAGE_ERRORS_PREFIX)
            ],
        )
        iam.Grant.add_to_principal(
            grantee=role,
            actions=["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"],
            resource_arns=[bucket.bucket_arn],
        )
        iam.Grant.add_to_principal(
            grantee=role,
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            # Records in the stream itself are encrypted by grants that Firehose makes for them.
            conditions={"StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"}},
            resource_arns=[encryption_key.key_arn],
        )
        logged = iam.Grant.add_to_principal(
            grantee=role,
            actions=["logs:PutLogEvents"],
            resource_arns=[f"{log.log_group_arn}:log-stream:*"],
        )
        acknowledge_grants(
            role, [written, logged], "Firehose names the objects after the time, and CDK the log stream."
        )
        return role
