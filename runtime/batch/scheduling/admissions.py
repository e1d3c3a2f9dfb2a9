"""Attempts at jobs that wait for places or hold them, in the table of all records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from batch.jobs.job_table import Job, JobTable
from batch.jobs.record_table import Table
from inference_contracts.batch_names import ADMISSION_PREFIX, EXPIRY_ATTRIBUTE, ID_ATTRIBUTE, JobState
from inference_contracts.json_record import JsonRecord

# Longer than any job lives. DynamoDB deletes the item after that.
_KEPT_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Measured(JsonRecord):
    """How fast a running attempt was answered (`batch.scheduling.measuring`)."""

    answered_before: int
    answered: int
    """`answered_before`, `answered`: Lines that had ended at the first and at the last measurement, over all
    attempts."""
    at: float
    """Time of the last measurement, in seconds since 1970."""
    shards_per_second: float
    """Rate of one of its places."""


@dataclass(frozen=True, slots=True)
class Admission(JsonRecord):
    """An attempt at a job that asked for places."""

    job: str
    """The job's identifier."""
    attempt: int
    task_token: str
    """Step Functions token to let the execution continue."""
    shards: int
    """Number of shards that the attempt must run."""
    shards_before: int
    """Turns of shards that earlier attempts finished."""
    seconds_per_shard: float
    """Planned seconds per shard, if all places of the model are used."""
    usd: float
    """Estimated cost of the job, in dollars."""
    places: int | None = None
    """Places of the job; None until it is admitted."""
    lines_per_shard: float = 0.0
    """Mean number of lines per shard; 0 if the attempt is not measured."""
    may_refuse: bool = False
    """Whether the execution accepts that it gets no places."""
    measured: Measured | None = None
    """Its speed; None until it runs."""
    expected_at: int | None = None
    """Expected end, in seconds since 1970; None until it is judged. A time after the deadline means that the
    job will not be finished."""
    refusal: str = ""
    """Reason why it gets no places; empty if it may run."""

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
    return f"{ADMISSION_PREFIX}{job}#{attempt}"


# A team's spending this month, including estimates. A budget stops admission, never a running shard.

#: States of a job that was admitted and has not ended.
_OPEN: tuple[JobState, ...] = ("in_progress", "finalizing", "cancelling")


@dataclass(frozen=True, slots=True)
class Admitted:
    """A job that was admitted and has not ended."""

    job: Job
    admission: Admission
    """Its current attempt, with its places and estimated cost."""


def admitted(jobs: JobTable, admissions: AdmissionTable) -> Iterator[Admitted]:
    """Iterate over the jobs of all teams that were admitted and have not ended."""
    for state in _OPEN:
        for job in jobs.in_state(state):
            admission = admissions.of(job)
            if admission is not None and admission.places is not None:
                yield Admitted(job, admission)
