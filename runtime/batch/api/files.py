"""`/v1/files`: small files come in whole; what a file holds is read from S3, not through the function."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response

from batch.api.errors import invalid, not_found
from batch.api.presentation import file_object, list_object
from batch.api.requests import Request, form, query_fields
from batch.jobs import identifiers
from batch.jobs.fields import Fields
from batch.jobs.files import FileRecord
from batch.jobs.settings import Platform
from batch.jobs.table import UnknownCursorError

_DAY_SECONDS = 24 * 3600
#: For how long an input stays where its sender does not say (30 days, as with OpenAI).
FILE_SECONDS = 30 * _DAY_SECONDS
_SHORTEST_SECONDS = 3600
_NO_LINES = (".csv", ".gz", ".parquet", ".zip", ".zst")
_MOST_LISTED = 10_000


class Files:
    """The files.

    Parameters
    ----------
    platform
        What the functions work with.
    """

    def __init__(self, platform: Platform) -> None:
        self._files = platform.files
        self._storage = platform.storage

    def create(self, request: Request) -> dict[str, Any]:
        """Make a file of a form."""
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

    def list(self, request: Request) -> dict[str, Any]:
        """Return a part of the team's files."""
        fields = query_fields(request.event)
        limit = int(fields.number("limit", default=_MOST_LISTED, least=1, most=_MOST_LISTED, whole=True))
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

    def retrieve(self, request: Request, file_id: str) -> dict[str, Any]:
        """Return a file's record."""
        return file_object(self._found(request, file_id))

    def delete(self, request: Request, file_id: str) -> dict[str, Any]:
        """Delete a file: its record first, so that nobody is shown what is not there."""
        record = self._found(request, file_id)
        self._files.delete(record)
        self._storage.delete([record.key], bucket=record.bucket)
        return {"id": record.id, "object": "file", "deleted": True}

    def content(self, request: Request, file_id: str) -> Response[str]:
        """Send the caller to where the content lies; clients leave their token behind on the way."""
        record = self._found(request, file_id)
        return Response(
            status_code=HTTPStatus.FOUND,
            body="",
            headers={
                "Location": self._storage.address(record.bucket, record.key),
                "Cache-Control": "no-store",
            },
        )

    def _found(self, request: Request, file_id: str) -> FileRecord:
        """Return a file of the team."""
        record = self._files.get(file_id, team=request.team.name, now=int(time.time()))
        if record is None:
            raise not_found("file", file_id)
        return record


def file_key(team: str, identifier: str) -> str:
    """Return where a file lies in the batch bucket.

    Parameters
    ----------
    team
        Whose it is.
    identifier
        The file's identifier.
    """
    return f"files/{team}/{identifier}"


def refuse_rows(filename: str, *, param: str) -> None:
    """Refuse a file that says that it is none of lines of JSON, before any of it is kept.

    Parameters
    ----------
    filename
        Its name.
    param
        Where the request has that.
    """
    if filename.lower().endswith(_NO_LINES):
        raise invalid(
            f"{param}: {filename[-200:]} is no file of lines of JSON, and purpose batch takes no other. Rows "
            "in Parquet or CSV stay in S3: submit a manifest that names them and a template.",
            param=param,
        )


def read_purpose(fields: Fields) -> int:
    """Check what a file is for, and return for how many seconds it stays.

    Parameters
    ----------
    fields
        The request's fields.
    """
    fields.text("purpose", choices=("batch",))
    expiry = fields.mapping("expires_after")
    if expiry is None:
        return FILE_SECONDS
    inner = Fields(expiry, prefix="expires_after.")
    inner.text("anchor", choices=("created_at",))
    seconds = inner.number("seconds", default=None, least=_SHORTEST_SECONDS, most=FILE_SECONDS, whole=True)
    inner.close()
    fields.problems += inner.problems
    return int(seconds)
