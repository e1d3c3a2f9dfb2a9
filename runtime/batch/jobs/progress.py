"""How far jobs are that have not ended, summed up from what their workers write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from batch.contracts.progress import WHOLE_JOB, Item, JobSize, ShardProgress
from batch.contracts.shard import Usage
from batch.jobs.job import Job, RequestCounts


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is.

    Parameters
    ----------
    counts, usage, cost_usd
        Its requests, tokens of those that are answered, and what they cost in dollars.
    """

    counts: RequestCounts
    usage: Usage
    cost_usd: float


class ProgressTable:
    """The items (`batch.contracts.progress`).

    Parameters
    ----------
    client
        A boto3 client of DynamoDB.
    name
        The table's name.
    """

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    def begin(self, job: str, size: JobSize, *, now: float) -> None:
        """Write what is known of a job once it is planned; writing it again changes nothing.

        Parameters
        ----------
        job
            The job's identifier.
        size
            What is known.
        now
            Seconds since 1970.
        """
        self._client.put_item(TableName=self._name, Item=size.item(job, now=now))

    def of(self, job: Job) -> Progress:
        """Return how far a job is; nothing of it is known until it is planned.

        Parameters
        ----------
        job
            The job.
        """
        size, completed, failed, usage = JobSize(), 0, 0, Usage()
        for item in self._items(job.id):
            if item["shard"]["S"] == WHOLE_JOB:
                size = JobSize.of(item)
                continue
            shard = ShardProgress.of(item)
            completed += shard.completed
            # Those that an earlier attempt had no time for are run again by this one.
            failed += shard.failed - (shard.expired if shard.attempt < job.attempt else 0)
            usage += shard.usage
        million = 1_000_000
        cost = (
            usage.input_tokens * size.usd_per_million_input_tokens
            + usage.output_tokens * size.usd_per_million_output_tokens
        ) / million
        return Progress(RequestCounts(size.total, completed, size.invalid + failed), usage, cost)

    def _items(self, job: str) -> Iterator[Item]:
        """Iterate over the items of a job, as they are now: a count that went back would be no count."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._name,
            KeyConditionExpression="#job = :job",
            ExpressionAttributeNames={"#job": "job"},
            ExpressionAttributeValues={":job": {"S": job}},
            ConsistentRead=True,
        )
        for page in pages:
            yield from page["Items"]
