"""`/v1/batches`: jobs, submitted and looked after."""

from __future__ import annotations

import re
import time
from http import HTTPStatus
from typing import Any, Final

from batch.api.errors import ApiError, invalid, not_found
from batch.api.presentation import batch_object, list_object
from batch.api.queue_choice import BEGINNING_BYTES, choose_queue
from batch.api.requests import Request, header, json_fields, query_fields
from batch.completion.redriving import NotRedrivableError, Redriver
from batch.contracts.request import Input
from batch.contracts.states import FINAL
from batch.jobs import identifiers
from batch.jobs.configuration import Queue
from batch.jobs.fields import Fields
from batch.jobs.job import Job
from batch.jobs.job_table import KeyReusedError, Once
from batch.jobs.manifest import ENDPOINTS, PRIORITIES, Manifest
from batch.jobs.settings import Platform
from batch.jobs.signals import read_signal
from batch.jobs.submitting import Submission, Submitter
from batch.jobs.table import StateConflictError, UnknownCursorError
from batch.objects import Objects

_MOST_LISTED: Final = 100
_LONGEST_KEY: Final = 255
#: A client that sends a request again because no answer came does so within this time.
_SENT_AGAIN_SECONDS: Final = 600
#: An execution that was started is seen by all of Step Functions after this time.
_SEEN_SECONDS: Final = 60
_HOURS: Final = {"h": 1, "d": 24}


class Batches:
    """The jobs.

    Parameters
    ----------
    platform
        What the functions work with.
    """

    def __init__(self, platform: Platform) -> None:
        self._configuration = platform.configuration
        self._jobs = platform.jobs
        self._files = platform.files
        self._progress = platform.progress
        self._storage = platform.storage
        self._executions = platform.executions
        self._submitter = Submitter(platform.jobs, platform.storage, platform.executions)
        objects = Objects(platform.storage.bucket)
        self._redriver = Redriver(platform.jobs, objects, platform.executions)

    def create(self, request: Request) -> dict[str, Any]:
        """Submit a job."""
        try:
            return self._shown(self._submitter.submit(self._submission(request)))
        except KeyReusedError as error:
            raise ApiError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"Idempotency-Key {error} came with other parameters before.",
                code="idempotency_key_reused",
            ) from error

    def list(self, request: Request) -> dict[str, Any]:
        """Return a part of the team's jobs, newest first."""
        fields = query_fields(request.event)
        limit = int(fields.number("limit", default=20, least=1, most=_MOST_LISTED, whole=True))
        after = fields.text("after", default="") or None
        fields.finish()
        try:
            page = self._jobs.of_team(request.team.name, after=after, limit=limit)
        except UnknownCursorError as error:
            raise not_found("batch", str(error)) from error
        return list_object([self._shown(job) for job in page.jobs], has_more=page.has_more)

    def retrieve(self, request: Request, batch_id: str) -> dict[str, Any]:
        """Return a job."""
        return self._shown(self._found(request, batch_id))

    def cancel(self, request: Request, batch_id: str) -> dict[str, Any]:
        """Stop a job; stopping it again stops what the first time might have left running."""
        job = self._found(request, batch_id)
        if job.state not in ("cancelling", "cancelled"):
            try:
                job = self._jobs.move(
                    job.id, "cancelling", before=["validating", "in_progress"], now=int(time.time())
                )
            except StateConflictError as error:
                job = self._found(request, batch_id)
                if job.state not in ("cancelling", "cancelled"):
                    raise _not_cancellable(job) from error
        if job.state == "cancelling":
            job = self._stop(job, request)
        return self._shown(job)

    def redrive(self, request: Request, batch_id: str) -> dict[str, Any]:
        """Run again what is not done of a job that failed or expired; OpenAI's API has nothing like it."""
        job = self._found(request, batch_id)
        try:
            return self._shown(self._redriver.redrive(job, now=int(time.time())))
        except NotRedrivableError as error:
            raise invalid(str(error), code="not_redrivable") from error

    def _shown(self, job: Job) -> dict[str, Any]:
        """Return a job as the API shows it, with how far it is by now."""
        return batch_object(job, None if job.state in FINAL else self._progress.of(job))

    def _stop(self, job: Job, request: Request) -> Job:
        """Stop what runs a job, whose end will end the job too; where nothing ever ran, end it here."""
        has_begun = self._executions.stop(job, cause=f"cancelled by {request.caller.principal}")
        begun_at = job.times.get("in_progress_at", job.created_at)
        if has_begun or time.time() - begun_at < _SEEN_SECONDS:
            return job
        try:
            return self._jobs.move(job.id, "cancelled", before=["cancelling"], now=int(time.time()))
        except StateConflictError:
            return self._found(request, job.id)

    def _found(self, request: Request, batch_id: str) -> Job:
        """Return a job of the team."""
        job = self._jobs.get(batch_id)
        if job is None or job.team != request.team.name:
            raise not_found("batch", batch_id)
        return job

    def _submission(self, request: Request) -> Submission:
        """Read what is submitted."""
        fields = json_fields(request.event)
        endpoint = fields.text("endpoint", choices=ENDPOINTS)
        file_id = fields.text("input_file_id")
        inputs = self._inputs(fields, file_id, request)
        window, hours = _window(fields)
        metadata = fields.metadata()
        # What a job leaves behind goes by the bucket's own rule, which is the platform's.
        fields.mapping("output_expires_after")
        options = Fields(metadata, prefix="metadata.")
        queue = choose_queue(options, self._configuration, lambda: self._beginning(inputs))
        most_usd = request.team.monthly_budget_usd
        least, most = PRIORITIES
        manifest = Manifest(
            inputs=inputs,
            endpoint=endpoint,
            priority=int(
                options.number("priority", default=queue.priority, least=least, most=most, whole=True)
            ),
            deadline_hours=min(hours, queue.deadline_hours),
            budget_usd=options.number("budget_usd", default=most_usd, least=0, most=most_usd),
            skip_invalid=options.flag("skip_invalid"),
            signal=read_signal(options, self._configuration.signals_of(request.team.name), endpoint=endpoint),
            metadata=metadata,
        )
        fields.problems += options.problems
        fields.finish()
        return Submission(
            manifest=manifest,
            queue=queue,
            team=request.team,
            source="api",
            principal=request.caller.principal,
            once=_once(request, manifest, queue),
            completion_window=window,
            input_file_id=file_id,
        )

    def _inputs(self, fields: Fields, identifier: str, request: Request) -> tuple[Input, ...]:
        """Return what a job reads; nothing where its file is wrong."""
        if not identifier:
            return ()
        file = self._files.get(identifier, team=request.team.name, now=int(time.time()))
        if file is None:
            fields.wrong("input_file_id", f"there is no file {identifier[:100]}", code="file_not_found")
            return ()
        if file.purpose != "batch":
            fields.wrong("input_file_id", f"its purpose is {file.purpose}, must be batch")
        return (Input(file.bucket, file.key, "jsonl"),)

    def _beginning(self, inputs: tuple[Input, ...]) -> bytes:
        """Return the beginning of what a job reads; nothing where its file is wrong."""
        return b"".join(
            self._storage.read_beginning(each.bucket, each.key, BEGINNING_BYTES) for each in inputs
        )


def _window(fields: Fields) -> tuple[str, int]:
    """Return until when a job must be finished, as it was said and in hours."""
    match = fields.matching(
        "completion_window", r"([1-9]\d{0,3})([hd])", meaning="hours or days, such as 24h"
    )
    return (match[0], int(match[1]) * _HOURS[match[2]]) if match else ("", 0)


def _once(request: Request, manifest: Manifest, queue: Queue) -> Once:
    """Return what makes two requests one job.

    The official clients send a request again when no answer comes, without a key but with a count; so the
    same request as a moment ago is another job, unless its sender says that it is the same.
    """
    fingerprint = identifiers.digest(queue.name, repr(manifest))
    key = header(request.event, "idempotency-key")
    if key:
        if len(key) > _LONGEST_KEY:
            raise invalid(f"Idempotency-Key: has {len(key)} characters, at most {_LONGEST_KEY} are allowed")
        return Once(f"key/{key}", fingerprint)
    count = header(request.event, "x-stainless-retry-count")
    is_sent_again = re.fullmatch(r"[1-9]\d?", count) is not None
    return Once(
        f"request/{fingerprint}", fingerprint, seconds=_SENT_AGAIN_SECONDS, overwrites=not is_sent_again
    )


def _not_cancellable(job: Job) -> ApiError:
    """Return the error of a job that has ended, or is about to."""
    return invalid(f"Cannot cancel a batch with status '{job.state}'.", code="not_cancellable")
