"""Attempts that wait for places or have them, in the table of all records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from batch.jobs.job import Job
from batch.jobs.table import Table

# Longer than any job lives: DynamoDB deletes what nobody asks for any more.
_KEPT_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Admission:
    """An attempt at a job that asked for places.

    Parameters
    ----------
    job, attempt
        The job's identifier, and which attempt it is.
    task_token
        Token by which the state machine is told that it may go on.
    shards
        Shards that the attempt has to do.
    shards_before
        Turns of shards that earlier attempts did.
    seconds_per_shard
        How long a shard takes, estimated.
    usd
        What the job costs, estimated, in dollars.
    places
        Places that it has; None until it is admitted.
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
        """Return it with places."""
        return replace(self, places=places)


class AdmissionTable:
    """The admissions.

    Parameters
    ----------
    table
        Where they are.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, admission: Admission, *, now: int) -> None:
        """Write what is known of an attempt.

        Parameters
        ----------
        admission
            The attempt.
        now
            Seconds since 1970.
        """
        self._table.put(
            {
                "id": _identifier(admission.job, admission.attempt),
                "record": asdict(admission),
                "expires": now + _KEPT_SECONDS,
            }
        )

    def of(self, job: Job) -> Admission | None:
        """Return the present attempt at a job; None if it has not asked yet.

        Parameters
        ----------
        job
            The job.
        """
        values: Mapping[str, Any] | None = self._table.get(_identifier(job.id, job.attempt))
        if values is None:
            return None
        seconds, usd = float(values["seconds_per_shard"]), float(values["usd"])
        return Admission(**{**values, "seconds_per_shard": seconds, "usd": usd})


def _identifier(job: str, attempt: int) -> str:
    """Return the partition key."""
    return f"admission#{job}#{attempt}"
