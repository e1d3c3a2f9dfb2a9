"""A table that is kept, and the tables of batch: jobs, files and uploads, and the progress of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_contracts import batch_names


def text_attribute(name: str) -> dynamodb.Attribute:
    """Return a key attribute that holds text."""
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


#: Partition key of each global index, by the index's name.
INDEXES: Final = {
    batch_names.TEAM_INDEX: batch_names.TEAM_INDEX_KEY,
    batch_names.STATE_INDEX: batch_names.STATE_INDEX_KEY,
}


class KeptTable(dynamodb.TableV2):
    """A table that can be restored to each second of the last 35 days, and is not deleted by chance.

    Parameters
    ----------
    partition_key, sort_key
        Attributes that hold text. Without a sort key, each partition has one record.
    expiry
        Attribute with the time after which DynamoDB deletes a record.
    encryption_key
        KMS key of every record.
    retain
        Whether the table outlives its stack.
    global_indexes, local_indexes
        Its indexes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        partition_key: str,
        sort_key: str | None = None,
        expiry: str,
        encryption_key: kms.IKey,
        retain: bool,
        global_indexes: Sequence[dynamodb.GlobalSecondaryIndexPropsV2] = (),
        local_indexes: Sequence[dynamodb.LocalSecondaryIndexProps] = (),
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            partition_key=text_attribute(partition_key),
            sort_key=text_attribute(sort_key) if sort_key else None,
            global_secondary_indexes=list(global_indexes) or None,
            local_secondary_indexes=list(local_indexes) or None,
            billing=dynamodb.Billing.on_demand(),
            deletion_protection=retain,
            encryption=dynamodb.TableEncryptionV2.customer_managed_key(encryption_key),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
            time_to_live_attribute=expiry,
        )


class BatchJobTable(KeptTable):
    """A table with one partition key, an index by team and an index by state.

    Parameters
    ----------
    encryption_key
        KMS key of every record.
    retain
        Whether the table outlives its stack.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey, retain: bool = True
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            partition_key=batch_names.ID_ATTRIBUTE,
            expiry=batch_names.EXPIRY_ATTRIBUTE,
            encryption_key=encryption_key,
            retain=retain,
            global_indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(
                    index_name=name,
                    partition_key=text_attribute(key),
                    sort_key=text_attribute(batch_names.ORDER_ATTRIBUTE),
                )
                for name, key in INDEXES.items()
            ],
        )


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
