"""The tables of the front door: API keys, and checkpoints of the ledger."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_constructs.storage.tables import text_attribute
from inference_contracts import door_key_table as keys
from inference_contracts import door_names


class DoorKeyTable(dynamodb.TableV2):
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
            partition_key=text_attribute(keys.BUCKET_ATTRIBUTE),
            sort_key=text_attribute(keys.ID_ATTRIBUTE),
            local_secondary_indexes=[
                dynamodb.LocalSecondaryIndexProps(
                    index_name=keys.CHANGE_INDEX,
                    sort_key=dynamodb.Attribute(
                        name=keys.CHANGE_ATTRIBUTE, type=dynamodb.AttributeType.NUMBER
                    ),
                    projection_type=dynamodb.ProjectionType.ALL,
                )
            ],
            billing=dynamodb.Billing.on_demand(),
            deletion_protection=retain,
            encryption=dynamodb.TableEncryptionV2.customer_managed_key(encryption_key),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
            time_to_live_attribute=keys.EXPIRY_ATTRIBUTE,
        )


class DoorLedgerTable(dynamodb.TableV2):
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
            partition_key=text_attribute(door_names.SLOT_ATTRIBUTE),
            sort_key=text_attribute(door_names.ACCOUNT_ATTRIBUTE),
            billing=dynamodb.Billing.on_demand(),
            deletion_protection=retain,
            encryption=dynamodb.TableEncryptionV2.customer_managed_key(encryption_key),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
            time_to_live_attribute=door_names.CHECKPOINT_EXPIRY_ATTRIBUTE,
        )
