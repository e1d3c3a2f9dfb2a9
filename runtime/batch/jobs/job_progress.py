"""Progress of running jobs, summed up from the items that their workers write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from batch.contracts.progress_items import WHOLE_JOB, Item, JobSize, ShardProgress
from batch.contracts.shard import Usage
from batch.jobs.job_table import Job, RequestCounts
from inference_contracts.batch_names import JOB_ATTRIBUTE, SHARD_ATTRIBUTE


@dataclass(frozen=True, slots=True)
class JobProgress:
    """Progress of a job."""

    counts: RequestCounts
    usage: Usage
    """Tokens of the answered requests."""
    cost_usd: float
    """Their cost in dollars."""


class ProgressTable:
    """The table of progress items (`batch.contracts.progress_items`).

    client: A boto3 client of DynamoDB.
    """

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    def begin(self, job: str, size: JobSize, *, now: float) -> None:
        """Write the size of a job once it is planned. A repeated call changes nothing."""
        self._client.put_item(TableName=self._name, Item=size.item(job, now=now))

    def of(self, job: Job) -> JobProgress:
        """Return the progress of a job. All counts are 0 until it is planned."""
        size, completed, failed, usage = JobSize(), 0, 0, Usage()
        for item in self._items(job.id):
            if item[SHARD_ATTRIBUTE]["S"] == WHOLE_JOB:
                size = JobSize.of(item)
                continue
            shard = ShardProgress.of(item)
            completed += shard.completed
            # This attempt runs again the lines that expired in an earlier one.
            failed += shard.failed - (shard.expired if shard.attempt < job.attempt else 0)
            usage += shard.usage
        million = 1_000_000
        cost = (
            usage.input_tokens * size.usd_per_million_input_tokens
            + usage.output_tokens * size.usd_per_million_output_tokens
        ) / million
        return JobProgress(RequestCounts(size.total, completed, size.invalid + failed), usage, cost)

    def _items(self, job: str) -> Iterator[Item]:
        """Iterate over the items of a job, with consistent reads: a count must never go back."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._name,
            KeyConditionExpression="#job = :job",
            ExpressionAttributeNames={"#job": JOB_ATTRIBUTE},
            ExpressionAttributeValues={":job": {"S": job}},
            ConsistentRead=True,
        )
        for page in pages:
            yield from page["Items"]
