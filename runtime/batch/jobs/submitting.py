"""A job is submitted: its record, what checking it needs, and the execution that runs it, in this order.

Each of the three steps can be done again. So whoever submits the same once more, because a connection or a
function broke off, finishes what the first began, and nothing is begun twice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from batch.contracts.keys import JobKeys
from batch.contracts.request import JobRequest, Publication
from batch.jobs import identifiers
from batch.jobs.configuration import DeclaredSignal, Queue, Team
from batch.jobs.executions import Executions
from batch.jobs.job import Job, JobError, Source
from batch.jobs.job_table import JobTable, Once, plain
from batch.jobs.manifest import Manifest
from batch.jobs.storage import Storage

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Submission:
    """What is submitted.

    Parameters
    ----------
    manifest
        What the job is.
    queue, team
        Where it waits, and whose it is.
    source, principal
        How it came in, and the ARN of who sent it; empty where that is not known.
    once
        What makes two submissions one job; None if each is one.
    completion_window
        Hours until it must be finished, in the words in which they were asked for.
    input_file_id
        The file that it reads, where it came in as one.
    """

    manifest: Manifest
    queue: Queue
    team: Team
    source: Source
    principal: str
    once: Once | None
    completion_window: str
    input_file_id: str = ""


class Submitter:
    """Makes jobs.

    Parameters
    ----------
    jobs
        Their records.
    storage
        The bucket.
    executions
        The state machine.
    """

    def __init__(self, jobs: JobTable, storage: Storage, executions: Executions) -> None:
        self._jobs = jobs
        self._storage = storage
        self._executions = executions

    def submit(self, submission: Submission) -> Job:
        """Make a job and start it, or finish doing so, and return it as it is now.

        Parameters
        ----------
        submission
            What is submitted.

        Raises
        ------
        KeyReusedError
            If its idempotency key came with something else before.
        """
        job = self._jobs.create(_job(submission, now=int(time.time())), submission.once)
        if job.state == "validating":
            self._start(job, submission)
        return job

    def refuse(self, submission: Submission, problems: tuple[JobError, ...]) -> Job:
        """Make the record of a job that will never run, so that its team can read why.

        Parameters
        ----------
        submission
            What was submitted; its manifest holds what could be read.
        problems
            What is wrong.
        """
        now = int(time.time())
        values = _job(submission, now=now).to_values()
        refused = {
            "state": "failed",
            "times": {"failed_at": now},
            "errors": [plain(each) for each in problems],
        }
        return self._jobs.create(Job.from_values({**values, **refused}), submission.once)

    def _start(self, job: Job, submission: Submission) -> None:
        """Write what checking the job needs, and start it."""
        request = _request(job, submission)
        self._storage.put(
            JobKeys(job.id).request, request.to_json().encode(), content_type="application/json"
        )
        self._executions.start(job)


def _job(submission: Submission, *, now: int) -> Job:
    """Return the record of a new job."""
    manifest = submission.manifest
    return Job(
        id=identifiers.new("batch"),
        team=submission.team.name,
        queue=submission.queue.name,
        model=submission.queue.model,
        endpoint=manifest.endpoint,
        inputs=manifest.inputs,
        source=submission.source,
        principal=submission.principal,
        created_at=now,
        expires_at=now + round(manifest.deadline_hours * _SECONDS_PER_HOUR),
        completion_window=submission.completion_window,
        priority=manifest.priority,
        budget_usd=manifest.budget_usd,
        input_file_id=submission.input_file_id,
        publication=None if manifest.signal is None else _publication(manifest.signal),
        metadata=manifest.metadata,
    )


def _publication(signal: DeclaredSignal) -> Publication:
    """Return where the answers of a job that is submitted now go."""
    return Publication(signal.name, time.time_ns() // 1_000_000, round(signal.ttl_hours * _SECONDS_PER_HOUR))


def _request(job: Job, submission: Submission) -> JobRequest:
    """Return what checking and planning read."""
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
    )
