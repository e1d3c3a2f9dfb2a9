"""The functions `batch.submission.handlers.handle_object` and `handle_schedule`.

An invalid manifest creates a failed job, so that its team reads the reason where it looks for the job. Both
functions may be called twice for the same event, and create one job.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from batch.jobs import identifiers
from batch.jobs.fields import InvalidError
from batch.jobs.job_table import Job, JobError, KeyReusedError, Once, Source
from batch.jobs.manifest import JobManifest, read_manifest, unread_manifest
from batch.jobs.settings import BatchPlatform, read_platform
from batch.jobs.storage import Storage
from batch.jobs.submitting import SubmittedJob, Submitter
from inference_contracts.batch_configuration import BatchTeam, Configuration, Queue

_logger = logging.getLogger(__name__)
_logger.setLevel(logging.INFO)

#: File name extension of manifests.
ENDING: Final = "manifest.json"
# The inputs become part of a record, which DynamoDB limits to 400 KB.
_MAX_BYTES: Final = 256 * 2**10


class Submissions:
    """Creates jobs from events."""

    def __init__(self, configuration: Configuration, storage: Storage, submitter: Submitter) -> None:
        self._configuration = configuration
        self._storage = storage
        self._submitter = submitter

    def of_object(self, event: Mapping[str, Any]) -> Job | None:
        """Return the job of a manifest; None if the object is not a manifest, or has changed since the event.

        event: ``Object Created`` of S3
            (https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html).
        """
        bucket, found = event["detail"]["bucket"]["name"], event["detail"]["object"]
        key, etag, version = found["key"], found["etag"], found.get("version-id")
        owner = self._owner(key)
        if owner is None:
            _logger.warning("s3://%s/%s is not <queue>/<team>/…%s of this platform", bucket, key, ENDING)
            return None
        content = None
        if found["size"] <= _MAX_BYTES:
            content = self._storage.read_version(bucket, key, etag=etag, version=version)
            if content is None:
                _logger.warning("s3://%s/%s has changed since, or is gone", bucket, key)
                return None
        once = Once(f"object/{bucket}/{key}/{version or ''}/{etag}", fingerprint="")
        return self._submit(content, *owner, source="object", once=once)

    def of_schedule(self, event: Mapping[str, Any]) -> Job:
        """Return the job of a schedule.

        event: The schedule's input: ``schedule`` and ``time``, which EventBridge Scheduler fills in
            (``<aws.scheduler.schedule-arn>``, ``<aws.scheduler.scheduled-time>``); ``queue``; ``team``; and
            ``manifest``, in which ``{date}`` is the day of that time.
        Raises LookupError if the platform does not have the queue or team.
        """
        queue = self._configuration.queue(event["queue"])
        team = self._configuration.team(event["team"])
        if queue is None or team is None:
            raise LookupError(f"there is no queue {event['queue']}, or no team {event['team']}")
        text = json.dumps(event["manifest"]).replace("{date}", event["time"][:10])
        once = Once(f"schedule/{event['schedule']}/{event['time']}", fingerprint="")
        return self._submit(text.encode(), queue, team, source="schedule", once=once)

    def _owner(self, key: str) -> tuple[Queue, BatchTeam] | None:
        """Return the queue and team of a manifest by its key. Only that team can write to the prefix."""
        queue_name, _, rest = key.partition("/")
        team_name, _, name = rest.partition("/")
        queue, team = self._configuration.queue(queue_name), self._configuration.team(team_name)
        return (queue, team) if queue and team and name.endswith(ENDING) else None

    def _manifest(self, content: bytes | None, queue: Queue, team: BatchTeam) -> JobManifest:
        """Read a manifest; None if it is too large."""
        if content is None:
            problem = JobError("manifest_too_large", f"the manifest has more than {_MAX_BYTES} bytes")
            raise InvalidError([problem])
        signals = self._configuration.signals_of(team.name)
        return read_manifest(content, queue=queue, team=team, signals=signals)

    def _submit(
        self, content: bytes | None, queue: Queue, team: BatchTeam, *, source: Source, once: Once
    ) -> Job:
        """Create the job of a manifest, or the failed record of an invalid one."""
        problems: tuple[JobError, ...]
        try:
            manifest = self._manifest(content, queue, team)
            return self._submitter.submit(_submission(manifest, queue, team, source, _once(manifest, once)))
        except InvalidError as error:
            problems = error.problems
        except KeyReusedError as error:
            message = f"idempotencyKey: {error} came with another manifest before"
            problems = (JobError("idempotency_key_reused", message, param="idempotencyKey"),)
        return self._submitter.refuse(
            _submission(unread_manifest(queue), queue, team, source, once), problems
        )


def handle_object(event: Mapping[str, Any], _context: Any) -> dict[str, str | None]:
    """Create a job from a manifest that was written to S3.

    event: ``Object Created`` of S3, from EventBridge.
    """
    job = submissions().of_object(event)
    return {"job": None if job is None else job.id}


def handle_schedule(event: Mapping[str, Any], _context: Any) -> dict[str, str | None]:
    """Create a job from a schedule."""
    return {"job": submissions().of_schedule(event).id}


@cache
def submissions() -> Submissions:
    return build(read_platform(os.environ))


def build(platform: BatchPlatform) -> Submissions:
    submitter = Submitter(platform.jobs, platform.storage, platform.executions)
    return Submissions(platform.configuration, platform.storage, submitter)


def _once(manifest: JobManifest, once: Once) -> Once:
    """Return the idempotency key of a manifest: its own, or one made from the event."""
    if not manifest.idempotency_key:
        return once
    return Once(f"manifest/{manifest.idempotency_key}", identifiers.digest(repr(manifest)))


def _submission(
    manifest: JobManifest, queue: Queue, team: BatchTeam, source: Source, once: Once
) -> SubmittedJob:
    return SubmittedJob(
        manifest=manifest,
        queue=queue,
        team=team,
        source=source,
        principal="",
        once=once,
        completion_window=manifest.completion_window,
    )
