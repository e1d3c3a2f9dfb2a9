"""Uploads a file of requests and creates a job from it."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from inference_blueprints.operate.batch.batch_api_client import BatchApiClient
from inference_contracts.batch_limits import MAX_REQUEST_BYTES, MAX_UPLOAD_BYTES
from inference_contracts.errors import UserError

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
