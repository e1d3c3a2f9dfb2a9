"""A team's jobs: submits, lists and follows them, reads their results, and what they cost."""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote

from inference_blueprints.operate.batch.batch_api_client import BatchApiClient
from inference_contracts.batch_limits import MAX_LISTED_JOBS, MAX_REQUEST_BYTES, MAX_UPLOAD_BYTES
from inference_contracts.batch_names import FINAL
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

_ROWS: Final = (".csv", ".parquet")
# The platform refuses longer lines.
_FIRST_LINE_BYTES: Final = 2**24


@dataclass(frozen=True, slots=True)
class JobSubmission:
    """A job that is not yet created."""

    file: Path
    """Requests, one JSON object per line."""
    window: str
    """Time limit, such as ``24h``."""
    queue: str | None = None
    """Queue; None for the model's only queue."""
    budget_usd: float | None = None
    """Maximum cost in dollars; None for the team's monthly budget."""
    signal: str | None = None
    """Signal to which the answers are written; None if they are only in files."""


def submit(api: BatchApiClient, submission: JobSubmission) -> dict[str, Any]:
    """Upload a file and return the job that is created from it.

    submission: The file and the settings of the job.
    Raises UserError if the file cannot be read or is refused.
    """
    endpoint = _endpoint(submission.file)
    file_id = _upload(api, submission.file)
    metadata = {}
    if submission.queue is not None:
        metadata["queue"] = submission.queue
    if submission.budget_usd is not None:
        metadata["budget_usd"] = f"{submission.budget_usd:.6f}"
    if submission.signal is not None:
        metadata["signal"] = submission.signal
    body = {
        "input_file_id": file_id,
        "endpoint": endpoint,
        "completion_window": submission.window,
        "metadata": metadata,
    }
    return api.post("/batches", body, headers={"Idempotency-Key": uuid.uuid4().hex})


def _endpoint(file: Path) -> str:
    """Return the endpoint of the first line, which all lines must have."""
    if file.suffix.lower() in _ROWS:
        raise UserError(
            f"{file}: got a file of rows, expected one JSON object per line; put it into S3 below one of "
            "your team's dataPrefixes, and submit a manifest with its address and a template"
        )
    try:
        size = file.stat().st_size
        with file.open("rb") as content:
            line = content.readline(_FIRST_LINE_BYTES)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}; check the path") from error
    if not size:
        raise UserError(f"{file}: is empty; a job needs at least one request, one JSON object per line")
    if size > MAX_UPLOAD_BYTES:
        raise UserError(
            f"{file}: has {size:,} bytes, at most {MAX_UPLOAD_BYTES:,} are allowed; put it into S3 below "
            "one of your team's dataPrefixes and submit a manifest with its address, or split it into jobs"
        )
    try:
        url = json.loads(line)["url"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UserError(
            f"{file}:1: is not a batch request; each line must be a JSON object with custom_id, method, url "
            "and body"
        ) from error
    return str(url)


def _upload(api: BatchApiClient, file: Path) -> str:
    """Upload a file in parts and return its ID."""
    digest = hashlib.md5(usedforsecurity=False)
    begin = {
        "filename": file.name,
        "bytes": file.stat().st_size,
        "mime_type": "application/jsonl",
        "purpose": "batch",
    }
    upload = api.post("/uploads", begin)["id"]
    parts = []
    with file.open("rb") as content:
        while part := content.read(MAX_REQUEST_BYTES):
            digest.update(part)
            parts.append(api.post_data(f"/uploads/{upload}/parts", part)["id"])
    body = {"part_ids": parts, "md5": digest.hexdigest()}
    return str(api.post(f"/uploads/{upload}/complete", body)["file"]["id"])


# The monthly cost of a team's jobs, and the rest of its budget.

#: A team's month in the format of the API.
Costs = Mapping[str, Any]


def costs_of(api: BatchApiClient, month: str | None) -> Costs:
    """Return the cost of the team's jobs in a month, the most expensive model and queue first.

    month: Month in UTC, such as ``2026-11``; None for this month.
    Raises UserError if the month is not valid, the API refuses it, or the API is not reached.
    """
    if month is not None and not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month, re.ASCII):
        raise UserError(f"got --month {month}; allowed are months such as 2026-11")
    costs = api.get("/costs", {"month": month} if month else None)
    rows = sorted(costs["data"], key=lambda each: (-each["usd"], each["model"], each["queue"]))
    return {**costs, "data": rows}


#: A batch in the format of the API.
Job = Mapping[str, Any]

_LOOK_SECONDS: Final = 5.0


def path(job_id: str) -> str:
    """Return the path of a job in the API; any characters of the ID are escaped."""
    return f"/batches/{quote(job_id, safe='')}"


def newest(api: BatchApiClient, limit: int | None = None) -> Iterator[Job]:
    """Iterate over the team's jobs, the newest first.

    limit: Most jobs; None for all.
    Raises UserError if the request is refused, or the API is not reached.
    """
    return islice(_listed(api, min(limit or MAX_LISTED_JOBS, MAX_LISTED_JOBS)), limit)


def _listed(api: BatchApiClient, page_size: int) -> Iterator[Job]:
    """Iterate over all jobs, page by page."""
    query = {"limit": str(page_size)}
    while True:
        page = api.get("/batches", query)
        yield from page["data"]
        if not page["has_more"]:
            return
        query["after"] = page["last_id"]


def watch(
    api: BatchApiClient, job_id: str, show: Callable[[Job], None], *, look_seconds: float = _LOOK_SECONDS
) -> Job:
    """Wait until a job has ended, and return it.

    show: Called with the job after each request.
    look_seconds: Time between two requests.
    Raises UserError if there is no such job, or the API is not reached.
    """
    while True:
        job = api.get(path(job_id))
        show(job)
        if job["status"] in FINAL:
            return job
        time.sleep(look_seconds)


def results(api: BatchApiClient, job_id: str, *, errors: bool) -> Iterator[bytes]:
    """Iterate over a job's results, or over the lines that failed.

    errors: Whether to read the failed lines.
    Raises UserError if there is no such job, or it has none.
    """
    job = api.get(path(job_id))
    file_id = job["error_file_id" if errors else "output_file_id"]
    if file_id is None:
        kind = "failed lines" if errors else "results"
        state = job["status"]
        advice = (
            "run `blueprints batch status BLUEPRINT JOB` to see the reason"
            if state in FINAL
            else "run `blueprints batch watch BLUEPRINT JOB` to wait for its end"
        )
        raise UserError(f"{job_id}: has no {kind}, its state is {state}; {advice}")
    return api.content(file_id)


def save(pieces: Iterable[bytes], file: Path) -> int:
    """Write results to a file, which appears only when it is complete, and return its bytes.

    Raises UserError if the file cannot be written.
    """
    partial = file.with_name(f"{file.name}.partial")
    try:
        with partial.open("wb") as content:
            size = copy(pieces, content)
        partial.replace(file)
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}; choose another place") from error
    finally:
        partial.unlink(missing_ok=True)
    return size


def copy(pieces: Iterable[bytes], target: BinaryIO) -> int:
    """Write results and return their bytes.

    target: The stream to which they are written.
    """
    return sum(map(target.write, pieces))
