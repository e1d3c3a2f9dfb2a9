"""Records as the objects of the OpenAI API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from batch.jobs.files import FileRecord, UploadRecord
from batch.jobs.job import TIMES, Job
from batch.jobs.progress import Progress


def batch_object(job: Job, progress: Progress | None) -> dict[str, Any]:
    """Return a job as a batch; `team`, `queue`, `priority`, `signal` and dollars are this platform's own.

    Parameters
    ----------
    job
        The job.
    progress
        How far it is; None where its end says that.
    """
    far = progress or Progress(job.counts, job.usage, job.cost_usd)
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
            # Engines count what a model thinks as output, not apart.
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
        "metadata": dict(job.metadata) or None,
        "team": job.team,
        "queue": job.queue,
        "priority": job.priority,
        "budget_usd": job.budget_usd,
        "cost_usd": far.cost_usd,
        "signal": job.publication and {"name": job.publication.signal, **asdict(job.published)},
    }


def file_object(record: FileRecord) -> dict[str, Any]:
    """Return a file.

    Parameters
    ----------
    record
        Its record.
    """
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
    """Return an upload.

    Parameters
    ----------
    record
        Its record.
    file
        The file that it became.
    now
        Seconds since 1970: one that nobody finished in time has expired.
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
    """Return a part of a list.

    Parameters
    ----------
    data
        Its entries.
    has_more
        Whether the list goes on.
    """
    return {
        "object": "list",
        "data": list(data),
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }
