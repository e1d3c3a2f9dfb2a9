"""What a worker of a model's batch queues is and may do, wherever it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk

from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.batch.shard_queue import ShardQueue
from inference_constructs.eks.pod_identity import Statement

#: Why its policy has wildcards.
WILDCARDS = "Objects of jobs and of teams have names that nobody knows before."


@dataclass(frozen=True)
class ModelWorker:
    """A worker of one model.

    Parameters
    ----------
    model
        Its model.
    queue
        The model's shards.
    environment
        What it is told, as `batch.worker` of the runtime reads it.
    statements
        What it may do, as statements of one IAM policy.
    """

    model: str
    queue: ShardQueue
    environment: Mapping[str, str]
    statements: Sequence[Statement]


@dataclass(frozen=True)
class WorkerCount:
    """How many workers of a model there are.

    Parameters
    ----------
    least, most
        The number follows the queue where they differ.
    shards
        How many one worker holds at once.
    """

    least: int
    most: int
    shards: int

    @property
    def follows_the_queue(self) -> bool:
        """Whether there are more of them at one time than at another."""
        return self.least < self.most


def worker_statements(
    stack: cdk.Stack,
    queue: ShardQueue,
    store: BatchStore,
    *,
    state_machine_arn: str,
    data_prefixes: Sequence[str],
) -> list[Statement]:
    """Return what a worker may do.

    Parameters
    ----------
    stack
        Where it is deployed.
    queue
        The model's shards.
    store
        Records and objects.
    state_machine_arn
        What is told of shards.
    data_prefixes
        ARNs of what teams let the platform read, each with a star at its end.
    """
    bucket = f"arn:{stack.partition}:s3:::{store.bucket_name}"
    return [
        _allow(["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"], queue.queue_arn),
        # A task's token is not of an execution that could be named.
        _allow(
            ["states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"],
            state_machine_arn,
        ),
        _allow(["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"], f"{bucket}/jobs/*"),
        {
            **_allow(["s3:ListBucket"], bucket),
            "Condition": {"StringLike": {"s3:prefix": "jobs/*"}},
        },
        # Alone there: a worker cannot touch the records of jobs.
        _allow(["dynamodb:PutItem"], store.progress_table_arn(stack)),
        _allow(["kms:Decrypt", "kms:GenerateDataKey"], store.encryption_key.key_arn),
        *([_allow(["s3:GetObject"], *data_prefixes)] if data_prefixes else []),
    ]


def _allow(actions: list[str], *resources: str) -> Statement:
    """Return a statement that allows actions."""
    return {"Effect": "Allow", "Action": actions, "Resource": list(resources)}
