"""The queue of events that nobody took."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from inference_constructs.findings import acknowledge


def undelivered_events(scope: Construct, construct_id: str) -> sqs.Queue:
    """Add the dead-letter queue of functions, rules and schedules, so that no event is lost unseen.

    Parameters
    ----------
    scope, construct_id
        Parent and construct ID.
    """
    queue = sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=cdk.Duration.days(14),
    )
    acknowledge(queue, {"SQS3": "It is the dead-letter queue of functions, rules and schedules."})
    return queue
