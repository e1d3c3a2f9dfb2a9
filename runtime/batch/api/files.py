"""`/v1/files` and `/v1/uploads`: small files whole, others in parts that are joined."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from batch.api.api_request import ApiError, ApiRequest, form, invalid, json_fields, not_found, query_fields
from batch.api.presentation import file_object, list_object, upload_object
from batch.contracts.generated_image import GeneratedImage
from batch.jobs import identifiers
from batch.jobs.fields import Fields
from batch.jobs.file_table import FileRecord, UploadRecord
from batch.jobs.record_table import StateConflictError, UnknownCursorError
from batch.jobs.settings import BatchPlatform
from batch.jobs.storage import ADDRESS_SECONDS, WrongContentError
from inference_contracts.batch_limits import MAX_FILE_DAYS, MAX_UPLOAD_BYTES, MIN_FILE_SECONDS

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


# `/v1/uploads`: uploads a file in parts. Each part is an object until the parts are joined.
#
# Clients send parts of 4 MiB, because a request cannot carry more. S3 joins no parts below 5 MiB, so the
# parts pass through the function again when the upload is completed. At the largest upload size, that takes
# seconds. Larger inputs are put into S3 directly and named by a manifest.

#: Time in which parts are accepted (an hour, as with OpenAI).
UPLOAD_SECONDS: Final = 3600
_FORGOTTEN_SECONDS: Final = 24 * 3600


class Uploads:
    """The routes of uploads.

    platform: Clients and tables of the functions.
    """

    def __init__(self, platform: BatchPlatform) -> None:
        self._uploads = platform.uploads
        self._files = platform.files
        self._storage = platform.storage

    def create(self, request: ApiRequest) -> dict[str, Any]:
        fields = json_fields(request.event)
        seconds = read_purpose(fields)
        size = int(fields.number("bytes", default=None, minimum=1, maximum=2**53, whole=True))
        filename = fields.text("filename", longest=255)
        fields.text("mime_type")
        fields.finish()
        refuse_rows(filename, param="filename")
        if size > MAX_UPLOAD_BYTES:
            raise ApiError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"bytes: {size} exceed the {MAX_UPLOAD_BYTES} that an upload may have. Leave the file in S3 "
                "and submit a manifest that names it.",
                code="upload_too_large",
                param="bytes",
            )
        now = int(time.time())
        record = UploadRecord(
            id=identifiers.new("upload"),
            team=request.team.name,
            filename=filename,
            size=size,
            created_at=now,
            expires_at=now + UPLOAD_SECONDS,
            file_seconds=seconds,
        )
        self._uploads.put(record, forgotten_at=now + _FORGOTTEN_SECONDS)
        return upload_object(record, file=None, now=now)

    def add_part(self, request: ApiRequest, upload_id: str) -> dict[str, Any]:
        record = self._pending(request, upload_id)
        sent, fields = form(request.event, file="data")
        fields.finish()
        if not sent.content:
            raise invalid("The part is empty.", code="empty_part", param="data")
        identifier = identifiers.new("part")
        self._storage.put(_prefix(record) + identifier, sent.content)
        return {
            "id": identifier,
            "object": "upload.part",
            "created_at": int(time.time()),
            "upload_id": record.id,
        }

    def complete(self, request: ApiRequest, upload_id: str) -> dict[str, Any]:
        """Create a file from the parts. A repeated call returns the same file."""
        fields = json_fields(request.event)
        part_ids = fields.texts("part_ids", required=True)
        digest = fields.text("md5", default="").lower() or None
        fields.finish()
        record = self._found(request, upload_id)
        if record.status == "completed":
            self._drop_parts(record)
            return self._shown(record)
        self._refuse_unless_pending(record)
        sizes = self._storage.sizes(_prefix(record))
        keys = [_prefix(record) + part_id for part_id in part_ids]
        _check_parts(record, part_ids, [sizes.get(key) for key in keys])
        completed = self._join(record, keys, digest)
        self._drop_parts(completed)
        return self._shown(completed)

    def cancel(self, request: ApiRequest, upload_id: str) -> dict[str, Any]:
        """Cancel an upload. A repeated call changes nothing."""
        record = self._found(request, upload_id)
        if record.status != "cancelled":
            self._refuse_unless_pending(record)
            try:
                record = self._uploads.finish(record, "cancelled")
            except StateConflictError as error:
                raise _not_pending(record.id, "no longer pending") from error
        self._drop_parts(record)
        return self._shown(record)

    def _drop_parts(self, record: UploadRecord) -> None:
        """Delete the parts of an upload that has ended, including those that an interrupted call left."""
        self._storage.delete(self._storage.sizes(_prefix(record)))

    def _join(self, record: UploadRecord, keys: list[str], md5: str | None) -> UploadRecord:
        """Create the file and complete the upload. Of two concurrent calls, one file remains."""
        identifier = identifiers.new("file")
        now = int(time.time())
        file = FileRecord(
            id=identifier,
            team=record.team,
            filename=record.filename,
            purpose="batch",
            size=record.size,
            bucket=self._storage.bucket,
            key=file_key(record.team, identifier),
            created_at=now,
            expires_at=now + record.file_seconds,
        )
        try:
            self._storage.join(keys, file.key, md5=md5)
        except WrongContentError as error:
            raise invalid(
                f"md5: the parts' is {error}, got {md5}", code="md5_mismatch", param="md5"
            ) from error
        self._files.put(file)
        try:
            return self._uploads.finish(record, "completed", file_id=file.id)
        except StateConflictError as error:
            self._files.delete(file)
            self._storage.delete([file.key])
            winner = self._uploads.get(record.id, team=record.team)
            if winner is None or winner.status != "completed":
                raise _not_pending(record.id, "no longer pending") from error
            return winner

    def _found(self, request: ApiRequest, upload_id: str) -> UploadRecord:
        record = self._uploads.get(upload_id, team=request.team.name)
        if record is None:
            raise not_found("upload", upload_id)
        return record

    def _pending(self, request: ApiRequest, upload_id: str) -> UploadRecord:
        """Return an upload of the team that still accepts parts."""
        record = self._found(request, upload_id)
        self._refuse_unless_pending(record)
        return record

    def _refuse_unless_pending(self, record: UploadRecord) -> None:
        """Refuse an upload that has ended."""
        if record.status != "pending":
            raise _not_pending(record.id, record.status)
        if record.expires_at <= time.time():
            raise _not_pending(record.id, "expired")

    def _shown(self, record: UploadRecord) -> dict[str, Any]:
        """Return an upload with the file made from it."""
        now = int(time.time())
        file = None
        if record.file_id is not None:
            file = self._files.get(record.file_id, team=record.team, now=now)
        return upload_object(record, file=file, now=now)


def _prefix(record: UploadRecord) -> str:
    """Return the key prefix of an upload's parts."""
    return f"uploads/{record.team}/{record.id}/"


def _check_parts(record: UploadRecord, part_ids: tuple[str, ...], sizes: list[int | None]) -> None:
    """Refuse a list of parts that is incomplete or differs from the announced size."""
    missing = [part_id for part_id, size in zip(part_ids, sizes, strict=True) if size is None]
    if missing:
        raise invalid(f"part_ids: {missing[0][:100]} is not a part of {record.id}", param="part_ids")
    if len(set(part_ids)) < len(part_ids):
        raise invalid("part_ids: a part is named twice", param="part_ids")
    total = sum(size for size in sizes if size is not None)
    if total != record.size:
        raise invalid(
            f"part_ids: the parts have {total} bytes, the upload was begun with bytes={record.size}",
            code="size_mismatch",
            param="part_ids",
        )


def _not_pending(upload_id: str, status: str) -> ApiError:
    return invalid(f"Upload {upload_id} is {status}; begin another.", code="upload_not_pending")
