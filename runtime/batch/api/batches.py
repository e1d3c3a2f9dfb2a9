"""`/v1/batches`: submits, lists, cancels and redrives jobs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from batch.api.api_request import ApiError, ApiRequest, header, invalid, json_fields, not_found, query_fields
from batch.api.files import read_lifetime
from batch.api.presentation import batch_object, list_object
from batch.completion.redriving import NotRedrivableError, Redriver
from batch.contracts.request import Input
from batch.jobs import identifiers
from batch.jobs.fields import Fields
from batch.jobs.job_table import Job, KeyReusedError, Once
from batch.jobs.manifest import JobManifest, requested_manifest
from batch.jobs.record_table import StateConflictError, UnknownCursorError
from batch.jobs.settings import BatchPlatform
from batch.jobs.submitting import SubmittedJob, Submitter
from batch.objects import Objects
from batch.scheduling.admissions import AdmissionTable
from inference_contracts.batch_body_fields import BODY_FIELDS
from inference_contracts.batch_configuration import Configuration, Queue
from inference_contracts.batch_limits import MAX_LISTED_JOBS
from inference_contracts.batch_names import FINAL

# Chooses the queue of a job, for which the OpenAI API has no field.

#: Bytes of a file that are read to find its model. A longer first line does not tell the model.
BEGINNING_BYTES = 2**20


def choose_queue(options: Fields, configuration: Configuration, read_beginning: Callable[[], bytes]) -> Queue:
    """Return the queue that a job names, or the only one that fits.

    On an error, note it and return any queue.

    read_beginning: Reads the first bytes of the job's file.
    """
    names = [queue.name for queue in configuration.queues]
    named = configuration.queue(options.text("queue", default="", choices=names))
    if named is not None or options.problems:
        return named or configuration.queues[0]
    if len(names) == 1:
        return configuration.queues[0]
    model = _model(read_beginning())
    meant = [queue for queue in configuration.queues if model in queue.model_names]
    if len(meant) == 1:
        return meant[0]
    options.wrong(
        "queue",
        f"is missing: the first line asks for model {json.dumps(model)}, which {len(meant)} queues serve; "
        f"name one of {', '.join(names)}",
        code="missing_required_parameter",
    )
    return configuration.queues[0]


def _model(beginning: bytes) -> str | None:
    """Return the model that the first line of a file asks for; None if it cannot be determined."""
    try:
        body = json.loads(beginning.partition(b"\n")[0])["body"]
        model = body["model"]
    except (ValueError, RecursionError, TypeError, LookupError):
        return None
    return model if isinstance(model, str) else None


_LONGEST_KEY: Final = 255
#: A client that repeats a request because it got no response does so within this time.
_SENT_AGAIN_SECONDS: Final = 600
#: After this time, all of Step Functions sees an execution that was started.
_SEEN_SECONDS: Final = 60
_HOURS: Final = {"h": 1, "d": 24}
#: The only window of OpenAI's API, so its clients always send it: in a queue with an earlier deadline, it is
#: that deadline (https://platform.openai.com/docs/api-reference/batch/create).
_OPENAI_WINDOW: Final = "24h"


class Batches:
    """The routes of batches.

    platform: Clients and tables of the functions.
    """

    def __init__(self, platform: BatchPlatform) -> None:
        self._configuration = platform.configuration
        self._jobs = platform.jobs
        self._files = platform.files
        self._progress = platform.progress
        self._storage = platform.storage
        self._executions = platform.executions
        self._admissions = AdmissionTable(platform.table)
        self._submitter = Submitter(platform.jobs, platform.storage, platform.executions)
        objects = Objects(platform.storage.bucket)
        self._redriver = Redriver(platform.jobs, objects, platform.executions)

    def create(self, request: ApiRequest) -> dict[str, Any]:
        try:
            return self._shown(self._submitter.submit(self._submission(request)))
        except KeyReusedError as error:
            raise ApiError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"Idempotency-Key {error} was used with other parameters before.",
                code="idempotency_key_reused",
            ) from error

    def list(self, request: ApiRequest) -> dict[str, Any]:
        """Return one page of the team's jobs, newest first."""
        fields = query_fields(request.event)
        limit = int(fields.number("limit", default=20, minimum=1, maximum=MAX_LISTED_JOBS, whole=True))
        after = fields.text("after", default="") or None
        fields.finish()
        try:
            page = self._jobs.of_team(request.team.name, after=after, limit=limit)
        except UnknownCursorError as error:
            raise not_found("batch", str(error)) from error
        return list_object([self._shown(job) for job in page.jobs], has_more=page.has_more)

    def retrieve(self, request: ApiRequest, batch_id: str) -> dict[str, Any]:
        return self._shown(self._found(request, batch_id))

    def cancel(self, request: ApiRequest, batch_id: str) -> dict[str, Any]:
        """Cancel a job. A repeated call stops everything that the first call may have left running."""
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

    def redrive(self, request: ApiRequest, batch_id: str) -> dict[str, Any]:
        """Run the unfinished requests of a job that failed or expired. OpenAI's API has no such route."""
        job = self._found(request, batch_id)
        try:
            return self._shown(self._redriver.redrive(job, now=int(time.time())))
        except NotRedrivableError as error:
            raise invalid(str(error), code="not_redrivable") from error

    def _shown(self, job: Job) -> dict[str, Any]:
        """Return a job as the API shows it, with its current progress."""
        if job.state in FINAL:
            return batch_object(job, None)
        admission = self._admissions.of(job)
        return batch_object(
            job, self._progress.of(job), expected_at=None if admission is None else admission.expected_at
        )

    def _stop(self, job: Job, request: ApiRequest) -> Job:
        """Stop the execution of a job, which then ends the job.

        If no execution ever started, end the job here.
        """
        has_begun = self._executions.stop(job, cause=f"cancelled by {request.caller.principal}")
        begun_at = job.times.get("in_progress_at", job.created_at)
        if has_begun or time.time() - begun_at < _SEEN_SECONDS:
            return job
        try:
            return self._jobs.move(job.id, "cancelled", before=["cancelling"], now=int(time.time()))
        except StateConflictError:
            return self._found(request, job.id)

    def _found(self, request: ApiRequest, batch_id: str) -> Job:
        job = self._jobs.get(batch_id)
        if job is None or job.team != request.team.name:
            raise not_found("batch", batch_id)
        return job

    def _submission(self, request: ApiRequest) -> SubmittedJob:
        """Read the fields of a submission."""
        fields = json_fields(request.event)
        endpoint = fields.text("endpoint", choices=tuple(BODY_FIELDS))
        file_id = fields.text("input_file_id")
        inputs = self._inputs(fields, file_id, request)
        window, hours = _window(fields)
        metadata = fields.metadata()
        output_seconds = read_lifetime(fields, "output_expires_after")
        options = Fields(metadata, prefix="metadata.")
        queue = choose_queue(options, self._configuration, lambda: self._beginning(inputs))
        if endpoint and endpoint not in queue.endpoints:
            allowed = ", ".join(queue.endpoints)
            fields.wrong("endpoint", f"got {endpoint}, must be one of {allowed} in queue {queue.name}")
        if not queue.allows(hours) and window != _OPENAI_WINDOW:
            deadline = f"at most {queue.longest_window}, the deadline of queue {queue.name}"
            fields.wrong("completion_window", f"got {window}, must be {deadline}, or {_OPENAI_WINDOW}")
        manifest = requested_manifest(
            options,
            queue=queue,
            team=request.team,
            signals=self._configuration.signals_of(request.team.name),
            inputs=inputs,
            endpoint=endpoint,
            hours=hours,
            metadata=metadata,
            output_seconds=output_seconds,
        )
        fields.problems += options.problems
        fields.finish()
        return SubmittedJob(
            manifest=manifest,
            queue=queue,
            team=request.team,
            source="api",
            principal=request.caller.principal,
            once=_once(request, manifest, queue),
            completion_window=window,
            input_file_id=file_id,
        )

    def _inputs(self, fields: Fields, identifier: str, request: ApiRequest) -> tuple[Input, ...]:
        """Return the inputs of a job; empty if its file is invalid."""
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
        """Return the first bytes of a job's input; empty if its file is invalid."""
        return b"".join(
            self._storage.read_beginning(each.bucket, each.key, BEGINNING_BYTES) for each in inputs
        )


def _window(fields: Fields) -> tuple[str, int]:
    """Return the completion window as it was given, and in hours."""
    match = fields.matching(
        "completion_window", r"([1-9]\d{0,3})([hd])", meaning="hours or days, such as 24h"
    )
    return (match[0], int(match[1]) * _HOURS[match[2]]) if match else ("", 0)


def _once(request: ApiRequest, manifest: JobManifest, queue: Queue) -> Once:
    """Return the key that makes two requests one job.

    The official clients repeat a request that got no response. They send no idempotency key, but they send a
    retry count. So a request that equals an earlier one is a new job, unless its sender marks it as a
    repetition.
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
    """Return the error for a job that has ended or is about to end."""
    return invalid(f"Cannot cancel a batch with status '{job.state}'.", code="not_cancellable")
