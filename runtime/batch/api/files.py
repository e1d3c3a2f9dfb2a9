"""`/v1/files`: uploads small files whole. Clients read contents from S3, not through the function."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response

from batch.api.api_errors import invalid, not_found
from batch.api.api_request import ApiRequest, form, query_fields
from batch.api.presentation import file_object, list_object
from batch.contracts.generated_image import GeneratedImage
from batch.jobs import identifiers
from batch.jobs.fields import Fields
from batch.jobs.file_records import FileRecord
from batch.jobs.record_table import UnknownCursorError
from batch.jobs.settings import BatchPlatform
from batch.jobs.storage import ADDRESS_SECONDS
from inference_contracts.batch_limits import MAX_FILE_DAYS, MIN_FILE_SECONDS

#: Longest lifetime of a file, and that of an input whose sender sets none (30 days, as with OpenAI).
_FILE_SECONDS = MAX_FILE_DAYS * 24 * 3600
_NO_LINES = (".csv", ".gz", ".parquet", ".zip", ".zst")
_MAX_LISTED = 10_000


class Files:
    """The routes of files.

    platform: Clients and tables of the functions.
    """

    def __init__(self, platform: BatchPlatform) -> None:
        self._files = platform.files
        self._jobs = platform.jobs
        self._storage = platform.storage

    def create(self, request: ApiRequest) -> dict[str, Any]:
        """Create a file from a form."""
        sent, fields = form(request.event, file="file")
        seconds = read_purpose(fields)
        fields.finish()
        refuse_rows(sent.filename, param="file")
        if not sent.content:
            raise invalid("The file is empty.", code="empty_file", param="file")
        identifier = identifiers.new("file")
        now = int(time.time())
        record = FileRecord(
            id=identifier,
            team=request.team.name,
            filename=sent.filename,
            purpose="batch",
            size=len(sent.content),
            bucket=self._storage.bucket,
            key=file_key(request.team.name, identifier),
            created_at=now,
            expires_at=now + seconds,
        )
        self._storage.put(record.key, sent.content)
        self._files.put(record)
        return file_object(record)

    def list(self, request: ApiRequest) -> dict[str, Any]:
        """Return one page of the team's files."""
        fields = query_fields(request.event)
        limit = int(fields.number("limit", default=_MAX_LISTED, minimum=1, maximum=_MAX_LISTED, whole=True))
        order = fields.text("order", default="desc", choices=("asc", "desc"))
        purpose = fields.text("purpose", default="") or None
        after = fields.text("after", default="") or None
        fields.finish()
        try:
            page = self._files.of_team(
                request.team.name,
                after=after,
                limit=limit,
                newest_first=order == "desc",
                purpose=purpose,
                now=int(time.time()),
            )
        except UnknownCursorError as error:
            raise not_found("file", str(error)) from error
        return list_object([file_object(record) for record in page.files], has_more=page.has_more)

    def retrieve(self, request: ApiRequest, file_id: str) -> dict[str, Any]:
        return file_object(self._found(request, file_id))

    def delete(self, request: ApiRequest, file_id: str) -> dict[str, Any]:
        """Delete a file. The record goes first, so that no list shows a file without content."""
        record = self._found(request, file_id)
        self._files.delete(record)
        self._storage.delete([record.key], bucket=record.bucket)
        return {"id": record.id, "object": "file", "deleted": True}

    def content(self, request: ApiRequest, file_id: str) -> Response[str]:
        """Redirect the caller to the content in S3.

        Clients drop their token when they follow the redirect.
        """
        image = GeneratedImage.of_file_id(file_id)
        record = self._found(request, file_id) if image is None else self._output_of(request, image)
        seconds = ADDRESS_SECONDS
        if record.expires_at is not None:
            seconds = max(1, min(seconds, record.expires_at - int(time.time())))
        return Response(
            status_code=HTTPStatus.FOUND,
            body="",
            headers={
                "Location": self._storage.address(
                    record.bucket, record.key if image is None else image.key, seconds=seconds
                ),
                "Cache-Control": "no-store",
            },
        )

    def _output_of(self, request: ApiRequest, image: GeneratedImage) -> FileRecord:
        """Return the output file whose rows name an image. An image can be read as long as that file."""
        job = self._jobs.get(image.job)
        if job is None or job.team != request.team.name or not job.output_file_id:
            raise not_found("file", image.file_id)
        return self._found(request, job.output_file_id)

    def _found(self, request: ApiRequest, file_id: str) -> FileRecord:
        record = self._files.get(file_id, team=request.team.name, now=int(time.time()))
        if record is None:
            raise not_found("file", file_id)
        return record


def file_key(team: str, identifier: str) -> str:
    """Return the key of a file in the batch bucket."""
    return f"files/{team}/{identifier}"


def refuse_rows(filename: str, *, param: str) -> None:
    """Refuse a file whose name or type says that it is not JSON Lines, before any of it is stored.

    param: Name of the field in the request.
    """
    if filename.lower().endswith(_NO_LINES):
        raise invalid(
            f"{param}: {filename[-200:]} is not a JSON Lines file, and purpose batch accepts no other. Leave "
            "rows in Parquet or CSV in S3 and submit a manifest that names them and a template.",
            param=param,
        )


def read_purpose(fields: Fields) -> int:
    """Check the purpose of a file, and return its lifetime in seconds."""
    fields.text("purpose", choices=("batch",))
    return read_lifetime(fields, "expires_after") or _FILE_SECONDS


def read_lifetime(fields: Fields, name: str) -> int | None:
    """Return the lifetime of a file in seconds; None without one.

    name: Name of the field, an object with ``anchor`` and ``seconds``
        (https://platform.openai.com/docs/api-reference/batch/create).
    """
    expiry = fields.mapping(name)
    if expiry is None:
        return None
    inner = Fields(expiry, prefix=f"{name}.")
    inner.text("anchor", choices=("created_at",))
    seconds = inner.number(
        "seconds", default=None, minimum=MIN_FILE_SECONDS, maximum=_FILE_SECONDS, whole=True
    )
    inner.close()
    fields.problems += inner.problems
    return int(seconds)
