"""Redrives a job that failed or expired: runs the requests that have no result yet.

A redrive is another attempt at the same job, with its own execution. It starts at the request for places. It
runs the unfinished shards, and of the finished shards the lines that expired at the deadline. Lines with an
answer and failed lines stay unchanged.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from batch.completion.merging import Outcome
from batch.contracts.request import JobDescription, JobRequest
from batch.jobs.executions import Executions
from batch.jobs.job_table import TIMES, Job, JobTable
from batch.jobs.record_table import StateConflictError
from batch.objects import Objects
from batch.preparation.planning import Plan
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_names import JobState

_BROKEN_OFF: tuple[JobState, ...] = ("failed", "expired")


class NotRedrivableError(Exception):
    """The job cannot be run again. The message tells why, and what to do."""


class Redriver:
    """Starts further attempts at jobs."""

    def __init__(self, jobs: JobTable, objects: Objects, executions: Executions) -> None:
        self._jobs = jobs
        self._objects = objects
        self._executions = executions

    def redrive(self, job: Job, *, now: int) -> Job:
        """Start another attempt at a job and return the job.

        If an attempt is running, return the job with that attempt.

        The attempt has as much time as the job had at first.

        Raises NotRedrivableError if the job did not fail or expire, was never cut into shards, or is changed
        by another writer at the same moment.
        """
        if job.state in _BROKEN_OFF:
            job = self._begin(job, now)
        elif job.state != "in_progress" or job.attempt == 1:
            raise NotRedrivableError(
                f"Cannot redrive a batch with status '{job.state}': only one that failed or expired."
            )
        self._executions.start(job)
        return job

    def _begin(self, job: Job, now: int) -> Job:
        """Write the next attempt into the record of a job. From then on, the scheduler may start it."""
        keys = JobKeys(job.id)
        self._refuse_unless_planned(keys)
        request = JobRequest.from_json(self._objects.read(keys.request))
        attempt, expires_at = job.attempt + 1, now + round(request.deadline) - job.created_at
        self._write(keys, attempt, expires_at)
        changes: dict[str, Any] = {
            "attempt": attempt,
            "expires_at": expires_at,
            "errors": [],
            "output_file_id": None,
            "error_file_id": None,
            # The earlier attempt reached this state. The new one has not.
            **{f"times.{TIMES[state]}": None for state in ("finalizing", *_BROKEN_OFF)},
        }
        try:
            return self._jobs.move(
                job.id, "in_progress", before=[job.state], now=now, attempt=job.attempt, changes=changes
            )
        except StateConflictError as error:
            raise NotRedrivableError(
                f"{job.id} was redriven at the same time: check its status again."
            ) from error

    def _refuse_unless_planned(self, keys: JobKeys) -> None:
        """Refuse a job that has no shards."""
        if not self._has(keys.plan):
            raise NotRedrivableError(
                f"{keys.job} ended before it was cut into shards, or its shards are gone: submit it again."
            )
        plan = Plan.from_json(self._objects.read(keys.plan))
        if plan.problems:
            raise NotRedrivableError(
                f"{keys.job} was refused ({plan.problems[0].message}): correct that and submit it again."
            )

    def _write(self, keys: JobKeys, attempt: int, expires_at: int) -> None:
        """Write the documents that the attempt reads."""
        try:
            description = JobDescription.from_json(self._objects.read(keys.description))
        except TypeError as error:
            raise NotRedrivableError(f"{keys.job}: {error}") from error
        description = replace(description, deadline=float(expires_at), attempt=attempt)
        self._objects.write(keys.description, description.to_json().encode())
        undone = b"".join(each + b"\n" for each in self._undone(keys))
        self._objects.write(keys.undone(attempt), undone, content_type="application/jsonl")

    def _undone(self, keys: JobKeys) -> list[bytes]:
        """Return the entries of unfinished shards. If only the merge is left, return the last of all entries.

        A map must have a child, and a worker that gets a finished shard reports that at once.
        """
        parts = self._objects.sizes(keys.parts)
        # The end of the earlier attempt found out which finished shards have lines left.
        left: tuple[str, ...] = ()
        if self._has(keys.outcome):
            left = Outcome.from_json(self._objects.read(keys.outcome)).undone
        entries = {json.loads(each)["shard"]: each for each in self._objects.read(keys.shards).splitlines()}
        undone = [
            entry for shard, entry in entries.items() if shard in left or keys.shard(shard).done not in parts
        ]
        return undone or list(entries.values())[-1:]

    def _has(self, key: str) -> bool:
        """Return whether an object exists."""
        return key in self._objects.sizes(key)
