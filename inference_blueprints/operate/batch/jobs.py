"""Lists and follows a team's jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from inference_blueprints.operate.batch.batch_api_client import BatchApiClient
from inference_contracts.batch_limits import MAX_LISTED_JOBS
from inference_contracts.batch_states import FINAL

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
