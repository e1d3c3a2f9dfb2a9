"""Jobs that want places, in the forms in which they are allotted and predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from batch.jobs.job_record import Job
from batch.scheduling.admissions import Admission
from batch.scheduling.allotment import WaitingOrRunning
from batch.scheduling.forecast import ForecastJob


@dataclass(frozen=True, slots=True)
class SchedulingCandidate:
    """A job that needs places."""

    job: Job
    admission: Admission
    shards: int
    """Unfinished shards."""

    def with_admission(self, admission: Admission) -> Self:
        return replace(self, admission=admission)

    def wanted(self, speed: float) -> WaitingOrRunning:
        """Return the job as `allot` takes it.

        speed: Speed of its model. It counts until the job itself is measured.
        """
        job, admission = self.job, self.admission
        measured = admission.measured
        return WaitingOrRunning(
            job=job.id,
            team=job.team,
            priority=job.priority,
            submitted=job.created_at,
            deadline=job.expires_at,
            shards=self.shards,
            seconds_per_shard=1 / measured.shards_per_second
            if measured
            else admission.seconds_per_shard / speed,
            is_running=admission.places is not None,
        )

    def forecast(self, speed: float, places: int) -> ForecastJob:
        """Return the job as `expected_ends` takes it.

        speed, places: Speed and places of its model.
        """
        measured = self.admission.measured
        return ForecastJob(
            self.wanted(speed),
            self.admission.seconds_per_shard / max(places, 1),
            measured.shards_per_second if measured else None,
        )
