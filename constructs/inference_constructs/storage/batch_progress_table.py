"""The table of how far batch jobs are."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_blueprints.contracts import batch_names


class BatchProgressTable(dynamodb.TableV2):
    """An item a shard of each job, as workers write them; no backup, for how a job ended is in its record.

    Apart from the jobs' own table, so that workers may write here and nowhere else.

    Parameters
    ----------
    encryption_key
        Key of every item.
    """

    def __init__(self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey) -> None:
        super().__init__(
            scope,
            construct_id,
            partition_key=dynamodb.Attribute(
                name=batch_names.JOB_ATTRIBUTE, type=dynamodb.AttributeType.STRING
            ),
            sort_key=_text(batch_names.SHARD_ATTRIBUTE),
            billing=dynamodb.Billing.on_demand(),
            encryption=dynamodb.TableEncryptionV2.customer_managed_key(encryption_key),
            removal_policy=cdk.RemovalPolicy.DESTROY,
            time_to_live_attribute=batch_names.EXPIRY_ATTRIBUTE,
        )


def _text(name: str) -> dynamodb.Attribute:
    """Return an attribute that holds text."""
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
