"""Converts records to objects of the OpenAI API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from batch.jobs.file_table import FileRecord, UploadRecord
from batch.jobs.job_progress import JobProgress
from batch.jobs.job_table import TIMES, Job


def batch_object(job: Job, progress: JobProgress | None, *, expected_at: int | None = None) -> dict[str, Any]:
    """Return a job as a batch.

    `team`, `queue`, `priority`, `expected_at`, `signal` and dollars are extensions of this platform.

    progress: Progress of the job; None if the job has ended.
    expected_at: Expected end in seconds since 1970; None if it is unknown, or the job has ended.
    """
    far = progress or JobProgress(job.counts, job.usage, job.cost_usd)
    usage = far.usage
    return {
        "id": job.id,
        "object": "batch",
        "endpoint": job.endpoint,
        "model": job.model,
        "input_file_id": job.input_file_id,
        "completion_window": job.completion_window,
        "status": job.state,
        "output_file_id": job.output_file_id,
        "error_file_id": job.error_file_id,
        "errors": {"object": "list", "data": [asdict(error) for error in job.errors]} if job.errors else None,
        "created_at": job.created_at,
        "expires_at": job.expires_at,
        **{name: job.times.get(name) for name in TIMES.values()},
        "request_counts": asdict(far.counts),
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
            "output_tokens": usage.output_tokens,
            # Engines count reasoning tokens as output tokens, not separately.
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
        "metadata": dict(job.metadata) or None,
        "team": job.team,
        "queue": job.queue,
        "priority": job.priority,
        "expected_at": expected_at,
        "budget_usd": job.budget_usd,
        "cost_usd": far.cost_usd,
        "signal": job.publication and {"name": job.publication.signal, **asdict(job.published)},
    }


def file_object(record: FileRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "object": "file",
        "bytes": record.size,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "filename": record.filename,
        "purpose": record.purpose,
        "status": "processed",
        "status_details": None,
    }


def upload_object(record: UploadRecord, *, file: FileRecord | None, now: int) -> dict[str, Any]:
    """Return an upload in the format of the API.

    file: The file made from the upload.
    now: Seconds since 1970. An upload that was not completed in time is shown as expired.
    """
    expired = record.status == "pending" and record.expires_at <= now
    return {
        "id": record.id,
        "object": "upload",
        "bytes": record.size,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "filename": record.filename,
        "purpose": "batch",
        "status": "expired" if expired else record.status,
        "file": None if file is None else file_object(file),
    }


def list_object(data: Sequence[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """Return one page of a list.

    has_more: Whether more pages follow.
    """
    return {
        "object": "list",
        "data": list(data),
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }
