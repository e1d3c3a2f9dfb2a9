"""A team's spending this month, including estimates. A budget stops admission, never a running shard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from batch.jobs.job_record import Job
from batch.jobs.job_table import JobTable
from batch.scheduling.admissions import Admission, AdmissionTable
from inference_contracts.batch_states import JobState

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
