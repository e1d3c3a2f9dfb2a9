"""What a team has spent this month and is about to spend: a budget stops admission, never a running shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from batch.contracts.states import JobState
from batch.jobs.job import Job
from batch.jobs.job_table import JobTable
from batch.scheduling.admissions import Admission, AdmissionTable

#: States in which a job may be that has not ended and was let in.
_OPEN: tuple[JobState, ...] = ("in_progress", "finalizing", "cancelling")


@dataclass(frozen=True, slots=True)
class Admitted:
    """A job that was let in and has not ended.

    Parameters
    ----------
    job
        Its record.
    admission
        Its present attempt, with its places and what it costs by the estimate.
    """

    job: Job
    admission: Admission


def admitted(
    jobs: JobTable, admissions: AdmissionTable, states: Iterable[JobState] = _OPEN
) -> Iterator[Admitted]:
    """Iterate over jobs of all teams that were let in and have not ended.

    Parameters
    ----------
    jobs, admissions
        The records.
    states
        Of these jobs.
    """
    for state in states:
        for job in jobs.in_state(state):
            admission = admissions.of(job)
            if admission is not None and admission.places is not None:
                yield Admitted(job, admission)
