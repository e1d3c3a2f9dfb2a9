"""The tables of the front door: API keys, and checkpoints of the ledger."""

from __future__ import annotations

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_constructs.storage.tables import KeptTable
from inference_contracts import door_key_table as keys
from inference_contracts import door_names


class DoorKeyTable(KeptTable):
    """The table of API keys, with an index in which replicas find what has changed.

    The index is local to each bucket, because only local indexes answer with strong consistency, and a
    revoked key must be seen at once. The table belongs to the platform's data: without it, nobody gets in.

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
            partition_key=keys.BUCKET_ATTRIBUTE,
            sort_key=keys.ID_ATTRIBUTE,
            expiry=keys.EXPIRY_ATTRIBUTE,
            encryption_key=encryption_key,
            retain=retain,
            local_indexes=[
                dynamodb.LocalSecondaryIndexProps(
                    index_name=keys.CHANGE_INDEX,
                    sort_key=dynamodb.Attribute(
                        name=keys.CHANGE_ATTRIBUTE, type=dynamodb.AttributeType.NUMBER
                    ),
                    projection_type=dynamodb.ProjectionType.ALL,
                )
            ],
        )


class DoorLedgerTable(KeptTable):
    """The table of the ledger's checkpoints: what the store of the counters is filled with after a loss.

    Parameters
    ----------
    encryption_key
        KMS key of every checkpoint.
    retain
        Whether the table outlives its stack: it holds what teams have spent in this month.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey, retain: bool = True
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            partition_key=door_names.SLOT_ATTRIBUTE,
            sort_key=door_names.ACCOUNT_ATTRIBUTE,
            expiry=door_names.CHECKPOINT_EXPIRY_ATTRIBUTE,
            encryption_key=encryption_key,
            retain=retain,
        )
