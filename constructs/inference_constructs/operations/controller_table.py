"""The table of the controllers: cases, places in flight, states and audit records."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_constructs.storage.table_attribute import text_attribute
from inference_contracts import operations_names


class ControllerTable(dynamodb.TableV2):
    """One item per case, place, state and audit record. Records expire by themselves.

    Parameters
    ----------
    encryption_key
        KMS key of every item.
    """

    def __init__(self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey) -> None:
        super().__init__(
            scope,
            construct_id,
            partition_key=text_attribute(operations_names.SCOPE_ATTRIBUTE),
            sort_key=text_attribute(operations_names.ENTRY_ATTRIBUTE),
            billing=dynamodb.Billing.on_demand(),
            encryption=dynamodb.TableEncryptionV2.customer_managed_key(encryption_key),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # A controller without its table starts anew: what is under way is written on the nodes.
            removal_policy=cdk.RemovalPolicy.DESTROY,
            time_to_live_attribute=operations_names.EXPIRY_ATTRIBUTE,
        )
