"""Shards of a model that wait for a worker."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

#: Seconds without a sign of life after which another worker gets a message; a worker says so more often.
_VISIBILITY_SECONDS = 120
# A message whose shard ends every worker that takes it is put aside; its task's time runs out by itself.
_MOST_RECEIVES = 10


class ShardQueue(sqs.Queue):
    """A queue of shards, and another for messages that no worker could deal with."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        #: Messages that no worker could deal with.
        self.dead_letters = sqs.Queue(
            scope,
            f"{construct_id}Dead",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=cdk.Duration.days(14),
        )
        super().__init__(
            scope,
            construct_id,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=cdk.Duration.seconds(_VISIBILITY_SECONDS),
            retention_period=cdk.Duration.days(4),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=_MOST_RECEIVES),
        )
