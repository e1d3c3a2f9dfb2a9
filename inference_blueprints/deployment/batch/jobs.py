"""A team's jobs, listed and watched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from inference_blueprints.contracts.batch_limits import MAX_LISTED_JOBS
from inference_blueprints.contracts.batch_states import FINAL
from inference_blueprints.deployment.batch.batch_api_client import BatchApiClient

#: A batch as the API answers it.
Job = Mapping[str, Any]

_LOOK_SECONDS: Final = 5.0


def path(job_id: str) -> str:
    """Return where a job is in the API, whatever somebody has typed for its identifier."""
    return f"/batches/{quote(job_id, safe='')}"


def newest(api: BatchApiClient, limit: int | None = None) -> Iterator[Job]:
    """Iterate over the team's jobs, the newest first.

    Parameters
    ----------
    limit
        Most jobs; None for all.

    Raises
    ------
    UserError
        If that is refused, or the API is not reached.
    """
    return islice(_listed(api, min(limit or MAX_LISTED_JOBS, MAX_LISTED_JOBS)), limit)


def _listed(api: BatchApiClient, page_size: int) -> Iterator[Job]:
    """Iterate over all jobs, a page at a time."""
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
    """Return a job that has ended; wait until it has.

    Parameters
    ----------
    show
        Called with the job each time that it was looked at.
    look_seconds
        How often that is.

    Raises
    ------
    UserError
        If there is no such job, or the API is not reached.
    """
    while True:
        job = api.get(path(job_id))
        show(job)
        if job["status"] in FINAL:
            return job
        time.sleep(look_seconds)
