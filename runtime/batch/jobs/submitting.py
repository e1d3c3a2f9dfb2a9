"""Submits a job: writes its record, then the document for checking, then starts the execution.

Each of the three steps can be repeated. If a connection or a function breaks off, a repeated submission
completes the first one. Nothing starts twice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from batch.contracts.request import JobRequest, Publication
from batch.jobs.executions import Executions
from batch.jobs.job_table import Job, JobError, JobTable, Once, Source, plain
from batch.jobs.manifest import JobManifest
from batch.jobs.storage import Storage
from inference_contracts.batch_configuration import BatchTeam, DeclaredSignal, Queue
from inference_contracts.batch_keys import JobKeys, new_job
from inference_contracts.units import SECONDS_PER_DAY, SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A submission of a job."""

    manifest: JobManifest
    """Description of the job."""
    queue: Queue
    team: BatchTeam
    source: Source
    principal: str
    """`source`, `principal`: Way of submission, and ARN of the sender; empty if the sender is unknown."""
    once: Once | None
    """Idempotency key; None if each submission is a new job."""
    completion_window: str
    """Hours until the deadline, as text, as they were requested."""
    input_file_id: str = ""
    """File that the job reads, if it was submitted as a file."""


class Submitter:
    def __init__(self, jobs: JobTable, storage: Storage, executions: Executions) -> None:
        self._jobs = jobs
        self._storage = storage
        self._executions = executions

    def submit(self, submission: SubmittedJob) -> Job:
        """Create a job and start it, or complete an interrupted call. Return the job in its current state.

        Raises KeyReusedError if the idempotency key was used before for another submission.
        """
        job = self._jobs.create(_job(submission, now=int(time.time())), submission.once)
        if job.state == "validating":
            self._start(job, submission)
        return job

    def refuse(self, submission: SubmittedJob, problems: tuple[JobError, ...]) -> Job:
        """Create the record of a job that will never run, so that its team can read the reason.

        submission: The submission. Its manifest contains the fields that could be read.
        """
        now = int(time.time())
        values = _job(submission, now=now).to_values()
        refused = {
            "state": "failed",
            "times": {"failed_at": now},
            "errors": [plain(each) for each in problems],
        }
        return self._jobs.create(Job.from_values({**values, **refused}), submission.once)

    def _start(self, job: Job, submission: SubmittedJob) -> None:
        """Write the document that the check of the job reads, and start the job."""
        request = _request(job, submission)
        self._storage.put(
            JobKeys(job.id).request, request.to_json().encode(), content_type="application/json"
        )
        self._executions.start(job)


def _job(submission: SubmittedJob, *, now: int) -> Job:
    manifest, kept = submission.manifest, submission.queue.keep_days * SECONDS_PER_DAY
    return Job(
        id=new_job(submission.queue.model),
        team=submission.team.name,
        queue=submission.queue.name,
        model=submission.queue.model,
        endpoint=manifest.endpoint,
        inputs=manifest.inputs,
        source=submission.source,
        principal=submission.principal,
        created_at=now,
        expires_at=manifest.expires_at(now),
        completion_window=submission.completion_window,
        priority=manifest.priority,
        budget_usd=manifest.budget_usd,
        input_file_id=submission.input_file_id,
        publication=None if manifest.signal is None else _publication(manifest.signal),
        metadata=manifest.metadata,
        accept_late=manifest.accept_late,
        output_seconds=min(manifest.output_seconds or kept, kept),
    )


def _publication(signal: DeclaredSignal) -> Publication:
    """Return the destination of the answers of a job submitted now."""
    return Publication(signal.name, time.time_ns() // 1_000_000, round(signal.ttl_hours * SECONDS_PER_HOUR))


def _request(job: Job, submission: SubmittedJob) -> JobRequest:
    """Return the document that checks and planning read."""
    return JobRequest(
        job=job.id,
        team=job.team,
        queue=job.queue,
        model=job.model,
        endpoint=job.endpoint,
        inputs=job.inputs,
        deadline=float(job.expires_at),
        budget_usd=job.budget_usd,
        capacity=submission.queue.capacity,
        limits=submission.queue.limits,
        skip_invalid=submission.manifest.skip_invalid,
        data_prefixes=submission.team.data_prefixes,
        template=submission.manifest.template,
        publication=job.publication,
        image_steps=submission.queue.image_steps,
        public_name=submission.queue.public_name,
    )
