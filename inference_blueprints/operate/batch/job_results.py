"""Reads and saves the results of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from inference_blueprints.operate.batch.batch_api_client import BatchApiClient
from inference_blueprints.operate.batch.jobs import path
from inference_contracts.batch_states import FINAL
from inference_contracts.errors import UserError


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
