"""A team's jobs, listed and watched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from inference_blueprints.deployment.batch.api import BatchApi

#: A batch as the API answers it.
Job = Mapping[str, Any]

#: States in which a job stays, but for a redrive.
ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
_PAGE: Final = 100
_LOOK_SECONDS: Final = 5.0


def path(job_id: str) -> str:
    """Return where a job is in the API, whatever somebody has typed for its identifier.

    Parameters
    ----------
    job_id
        The job.
    """
    return f"/batches/{quote(job_id, safe='')}"


def newest(api: BatchApi, limit: int | None = None) -> Iterator[Job]:
    """Iterate over the team's jobs, the newest first.

    Parameters
    ----------
    api
        The platform's.
    limit
        Most jobs; None for all.

    Raises
    ------
    UserError
        If that is refused, or the API is not reached.
    """
    return islice(_listed(api, min(limit or _PAGE, _PAGE)), limit)


def _listed(api: BatchApi, page_size: int) -> Iterator[Job]:
    """Iterate over all jobs, a page at a time."""
    query = {"limit": str(page_size)}
    while True:
        page = api.get("/batches", query)
        yield from page["data"]
        if not page["has_more"]:
            return
        query["after"] = page["last_id"]


def watch(
    api: BatchApi, job_id: str, show: Callable[[Job], None], *, look_seconds: float = _LOOK_SECONDS
) -> Job:
    """Return a job that has ended; wait until it has.

    Parameters
    ----------
    api
        The platform's.
    job_id
        The job.
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
        if job["status"] in ENDED:
            return job
        time.sleep(look_seconds)
