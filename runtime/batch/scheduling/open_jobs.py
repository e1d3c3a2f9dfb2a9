"""The jobs that have not ended, read once per run of the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from batch.jobs.job_record import Job
from batch.jobs.job_table import JobTable
from batch.scheduling.admissions import Admission, AdmissionTable
from inference_contracts.batch_states import OPEN


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job that has not ended."""

    job: Job
    admission: Admission | None
    """Its current attempt; None if that has not asked for places yet."""

    @property
    def has_places(self) -> bool:
        """Whether its current attempt was admitted."""
        return self.admission is not None and self.admission.places is not None

    @property
    def is_refused(self) -> bool:
        """Whether it gets no places. Its execution is about to end it."""
        return self.job.state == "validating" and self.admission is not None and bool(self.admission.refusal)


def read_open_jobs(jobs: JobTable, admissions: AdmissionTable) -> Sequence[OpenJob]:
    """Return the open jobs of all teams, each once.

    The index has one list per state. A job that changes its state while the lists are read can be in two of
    them; the later one counts.
    """
    found = {job.id: job for state in OPEN for job in jobs.in_state(state)}
    return [OpenJob(job, admissions.of(job)) for job in found.values()]
