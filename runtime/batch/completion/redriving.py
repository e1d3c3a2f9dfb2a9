"""Runs again what is not done of a job that failed or ran out of time.

A redrive is another attempt at the same job: an execution of its own, which begins where places are asked for
and does the shards that are not done, and of those that are done the lines that the deadline overtook. What
has an answer or failed stays as it is.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from batch.completion.merging import Outcome
from batch.contracts.description import JobDescription
from batch.contracts.keys import JobKeys
from batch.contracts.request import JobRequest
from batch.contracts.states import JobState
from batch.jobs.executions import Executions
from batch.jobs.job import TIMES, Job
from batch.jobs.job_table import JobTable
from batch.jobs.table import StateConflictError
from batch.objects import Objects
from batch.preparation.planning import Plan

_BROKEN_OFF: tuple[JobState, ...] = ("failed", "expired")


class NotRedrivableError(Exception):
    """A job that cannot be run again: says why, and what to do."""


class Redriver:
    """Starts further attempts at jobs.

    Parameters
    ----------
    jobs
        Their records.
    objects
        The batch bucket.
    executions
        The state machine.
    """

    def __init__(self, jobs: JobTable, objects: Objects, executions: Executions) -> None:
        self._jobs = jobs
        self._objects = objects
        self._executions = executions

    def redrive(self, job: Job, *, now: int) -> Job:
        """Start another attempt at a job and return it; one that is under way is the same attempt.

        The attempt has as much time as the job had at first.

        Parameters
        ----------
        job
            The job.
        now
            Seconds since 1970.

        Raises
        ------
        NotRedrivableError
            If the job did not fail or expire, or was never cut into shards; or if somebody else moves it at
            the same moment.
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
        """Make the record of a job that of its next attempt, which the scheduler may start from then on."""
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
            # It has come this far once, and is not there now.
            **{f"times.{TIMES[state]}": None for state in ("finalizing", *_BROKEN_OFF)},
        }
        try:
            return self._jobs.move(
                job.id, "in_progress", before=[job.state], now=now, attempt=job.attempt, changes=changes
            )
        except StateConflictError as error:
            raise NotRedrivableError(
                f"{job.id} was redriven at the same moment: look at it again."
            ) from error

    def _refuse_unless_planned(self, keys: JobKeys) -> None:
        """Refuse a job that has no shards, for whatever reason."""
        if not self._has(keys.plan):
            raise NotRedrivableError(
                f"{keys.job} ended before it was cut into shards, or they are kept no more: submit it again."
            )
        plan = Plan.from_json(self._objects.read(keys.plan))
        if plan.problems:
            raise NotRedrivableError(
                f"{keys.job} was refused ({plan.problems[0].message}): mend that and submit it again."
            )

    def _write(self, keys: JobKeys, attempt: int, expires_at: int) -> None:
        """Write what the attempt reads."""
        description = JobDescription.from_json(self._objects.read(keys.description))
        description = replace(description, deadline=float(expires_at), attempt=attempt)
        self._objects.write(keys.description, description.to_json().encode())
        undone = b"".join(each + b"\n" for each in self._undone(keys))
        self._objects.write(keys.undone(attempt), undone, content_type="application/jsonl")

    def _undone(self, keys: JobKeys) -> list[bytes]:
        """Return the entries of shards that are not done; the last of all where only the merging is left.

        A map has to have a child, and a worker that is given a shard that is done says so at once.
        """
        parts = self._objects.sizes(keys.parts)
        # The end of the attempt before has read which of the shards that are done have lines left.
        left: tuple[str, ...] = ()
        if self._has(keys.outcome):
            left = Outcome.from_json(self._objects.read(keys.outcome)).undone
        entries = {json.loads(each)["shard"]: each for each in self._objects.read(keys.shards).splitlines()}
        undone = [
            entry for shard, entry in entries.items() if shard in left or keys.shard(shard).done not in parts
        ]
        return undone or list(entries.values())[-1:]

    def _has(self, key: str) -> bool:
        """Return whether an object is there."""
        return key in self._objects.sizes(key)
