"""The queue of shards that wait for a worker of one model."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from inference_contracts.batch_limits import VISIBILITY_SECONDS

# A shard that crashes each worker that receives it moves to the dead-letter queue. Its task then times out.
_MAX_RECEIVES = 10


class BatchShardQueue(sqs.Queue):
    """A queue of shards with a dead-letter queue. A shard is a part of a batch job that one worker answers.

    The ``grant_*`` methods give fewer permissions than those of ``sqs.Queue``.

    Examples
    --------
    >>> queue = BatchShardQueue(stack, "Shards")  # doctest: +SKIP
    >>> queue.grant_consume(worker_role)  # doctest: +SKIP
    >>> queue.metric_oldest_shard_age().create_alarm(  # doctest: +SKIP
    ...     stack, "Late", threshold=3600, evaluation_periods=1
    ... )
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        #: Shards that no worker could process.
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
            visibility_timeout=cdk.Duration.seconds(VISIBILITY_SECONDS),
            retention_period=cdk.Duration.days(4),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=_MAX_RECEIVES),
        )

    def grant_consume(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a worker to receive shards, to keep them while it works, and to delete them.

        Parameters
        ----------
        grantee
            Role or pod identity of the worker.
        """
        return self.grant(grantee, "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")

    def grant_send(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to put shards into the queue.

        Parameters
        ----------
        grantee
            Role of the sender.
        """
        return self.grant(grantee, "sqs:SendMessage")

    def grant_read_attributes(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to read how many shards wait and how many are held, but not the shards.

        Parameters
        ----------
        grantee
            Role or pod identity of the autoscaler, or of a worker.
        """
        return self.grant(grantee, "sqs:GetQueueAttributes")

    def metric_oldest_shard_age(self, *, label: str | None = None) -> cloudwatch.Metric:
        """Return the age of the oldest shard in seconds: the maximum per five minutes.

        Parameters
        ----------
        label
            Name of the line in a graph.
        """
        return self.metric_approximate_age_of_oldest_message(label=label, statistic="Maximum")

    def metric_waiting_shards(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Return the number of shards that wait for a worker: the maximum per period.

        Parameters
        ----------
        period
            Length of a period. None for five minutes.
        """
        return self.metric_approximate_number_of_messages_visible(period=period, statistic="Maximum")

    def metric_shards_in_progress(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Return the number of shards that workers hold: the maximum per period.

        Parameters
        ----------
        period
            Length of a period. None for five minutes.
        """
        return self.metric_approximate_number_of_messages_not_visible(period=period, statistic="Maximum")

    def metric_dead_shards(self) -> cloudwatch.Metric:
        """Return the number of shards in the dead-letter queue: the maximum per five minutes."""
        return self.dead_letters.metric_approximate_number_of_messages_visible(statistic="Maximum")
