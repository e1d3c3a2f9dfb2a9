"""The table of the progress of batch jobs."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_constructs.storage.table_attribute import text_attribute
from inference_contracts import batch_names


class BatchProgressTable(dynamodb.TableV2):
    """A table with one item per shard. It needs no backup: a job's result is in the table of jobs.

    It is separate from the table of jobs, so that workers need write permissions for this table only.

    Parameters
    ----------
    encryption_key
        KMS key of every item.
    """

    def __init__(self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey) -> None:
        super().__init__(
            scope,
            construct_id,
            partition_key=text_attribute(batch_names.JOB_ATTRIBUTE),
            sort_key=text_attribute(batch_names.SHARD_ATTRIBUTE),
            billing=dynamodb.Billing.on_demand(),
            encryption=dynamodb.TableEncryptionV2.customer_managed_key(encryption_key),
            removal_policy=cdk.RemovalPolicy.DESTROY,
            time_to_live_attribute=batch_names.EXPIRY_ATTRIBUTE,
        )
