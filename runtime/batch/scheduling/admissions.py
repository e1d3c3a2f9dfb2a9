"""Attempts at jobs that wait for places or hold them, in the table of all records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from batch.jobs.job_record import Job
from batch.jobs.record_table import Table
from batch.json_record import JsonRecord
from inference_blueprints.contracts.batch_names import EXPIRY_ATTRIBUTE, ID_ATTRIBUTE

# Longer than any job lives. DynamoDB deletes the item after that.
_KEPT_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Admission(JsonRecord):
    """An attempt at a job that asked for places.

    Parameters
    ----------
    job, attempt
        The job's identifier, and the number of the attempt.
    task_token
        Step Functions token to let the execution continue.
    shards
        Number of shards that the attempt must run.
    shards_before
        Turns of shards that earlier attempts finished.
    seconds_per_shard
        Estimated seconds per shard.
    usd
        Estimated cost of the job, in dollars.
    places
        Places of the job; None until it is admitted.
    """

    job: str
    attempt: int
    task_token: str
    shards: int
    shards_before: int
    seconds_per_shard: float
    usd: float
    places: int | None = None

    def with_places(self, places: int) -> Admission:
        return replace(self, places=places)


class AdmissionTable:
    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, admission: Admission, *, now: int) -> None:
        self._table.put(
            {
                ID_ATTRIBUTE: _identifier(admission.job, admission.attempt),
                "record": admission.to_values(),
                EXPIRY_ATTRIBUTE: now + _KEPT_SECONDS,
            }
        )

    def of(self, job: Job) -> Admission | None:
        """Return the current attempt at a job; None if it has not asked for places yet."""
        values: Mapping[str, Any] | None = self._table.get(_identifier(job.id, job.attempt))
        return None if values is None else Admission.from_values(values)


def _identifier(job: str, attempt: int) -> str:
    return f"admission#{job}#{attempt}"
