"""Sends a file of requests and makes a job of it."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from inference_blueprints.contracts.batch_limits import MAX_REQUEST_BYTES, MAX_UPLOAD_BYTES
from inference_blueprints.deployment.batch.batch_api_client import BatchApiClient
from inference_blueprints.errors import UserError

_ROWS: Final = (".csv", ".parquet")
# A line that is longer is refused by the platform anyhow.
_FIRST_LINE_BYTES: Final = 2**24


@dataclass(frozen=True, slots=True)
class JobSubmission:
    """A job to be.

    Parameters
    ----------
    file
        Requests, a JSON object a line.
    window
        Until when it must be finished, such as ``24h``.
    queue
        Where it waits; None for the only one that it can mean.
    budget_usd
        What it may cost, in dollars; None for the team's budget of a month.
    signal
        Signal that its answers become; None where they stay in its files alone.
    """

    file: Path
    window: str
    queue: str | None = None
    budget_usd: float | None = None
    signal: str | None = None


def submit(api: BatchApiClient, submission: JobSubmission) -> dict[str, Any]:
    """Send a file and return the job that it has become.

    Parameters
    ----------
    submission
        The file, and how it is to be run.

    Raises
    ------
    UserError
        If the file cannot be read or is refused.
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
    """Return what the first line asks for, which is what all lines have to ask for."""
    if file.suffix.lower() in _ROWS:
        raise UserError(
            f"{file}: holds rows, by its name; the Batch API takes a JSON object a line. Put it into S3 "
            "below one of your team's dataPrefixes and submit a manifest that names it and a template"
        )
    try:
        size = file.stat().st_size
        with file.open("rb") as content:
            line = content.readline(_FIRST_LINE_BYTES)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from error
    if not size:
        raise UserError(f"{file}: is empty; a job needs one request at least, a JSON object a line")
    if size > MAX_UPLOAD_BYTES:
        raise UserError(
            f"{file}: has {size:,} bytes, {MAX_UPLOAD_BYTES:,} can be sent; put it into S3 below one of your "
            "team's dataPrefixes and submit a manifest that names it, or split it into several jobs"
        )
    try:
        url = json.loads(line)["url"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UserError(
            f"{file}:1: is no request of a batch; a line is a JSON object with custom_id, method, url and "
            "body"
        ) from error
    return str(url)


def _upload(api: BatchApiClient, file: Path) -> str:
    """Send a file in parts and return its identifier."""
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
