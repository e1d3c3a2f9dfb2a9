"""Files and uploads in the table. A team never sees those of another team."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from batch.jobs import identifiers
from batch.jobs.record_table import Table, UnknownCursorError
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_names import (
    EXPIRY_ATTRIBUTE,
    ID_ATTRIBUTE,
    ORDER_ATTRIBUTE,
    STATE_INDEX_KEY,
    TEAM_INDEX_KEY,
)
from inference_contracts.json_record import JsonRecord

# Records of files and of uploads that become files.

Purpose = Literal["batch", "batch_output"]
UploadStatus = Literal["pending", "completed", "cancelled"]


@dataclass(frozen=True, slots=True)
class FileRecord(JsonRecord):
    """A file of a team. Times are whole seconds since 1970."""

    id: str
    """The file's identifier."""
    team: str
    filename: str
    """The team's name for it."""
    purpose: Purpose
    """Whether the file is an input or a result of batches."""
    size: int
    bucket: str
    key: str
    """`bucket`, `key`: Its place in S3."""
    created_at: int
    expires_at: int | None = None
    """`created_at`, `expires_at`: Time of creation, and time of deletion; None if the file is kept."""


@dataclass(frozen=True, slots=True)
class UploadRecord(JsonRecord):
    """A file that is uploaded in parts. Times are whole seconds since 1970."""

    id: str
    """The upload's identifier."""
    team: str
    filename: str
    """Name of the future file."""
    size: int
    """Its size in bytes."""
    created_at: int
    """Start of the upload."""
    expires_at: int
    """Time until which parts are accepted."""
    file_seconds: int
    """Lifetime of the future file, in seconds."""
    status: UploadStatus = "pending"
    file_id: str | None = None
    """The file made from the upload."""


# Objects that must be deleted at a time: expired files, and the intermediate objects of ended jobs.
#
# S3's lifecycle rules count whole days and do not know when a job ended. So the scheduler deletes these
# objects itself, and the rules delete what it missed (https://docs.aws.amazon.com/AmazonS3/latest/userguide/
# intro-lifecycle-rules.html). Each deletion is an item of the table of all records, in the index by state.

#: Value of the index for deletions. No job has such a state.
_STATE: Final = "deletion"
#: Time between the end of a job and the deletion of its intermediate objects: workers that were about to
#: write something have stopped by then.
_AFTER_END_SECONDS: Final = 3600
# Until then the lifecycle rules have deleted the objects.
_KEPT_SECONDS: Final = 40 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Deletion(JsonRecord):
    """Objects of the batch bucket to delete."""

    id: str
    """Identifier of the file or the job."""
    due: int
    """When, in seconds since 1970."""
    prefixes: tuple[str, ...]
    """Prefixes of the objects. An object's key is a prefix too."""


class DeletionTable:
    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, deletion: Deletion) -> None:
        """Plan a deletion. It replaces an earlier one of the same file or job."""
        self._table.put(
            {
                ID_ATTRIBUTE: _identifier(deletion.id),
                "record": deletion.to_values(),
                STATE_INDEX_KEY: _STATE,
                ORDER_ATTRIBUTE: f"{deletion.due:012d}#{deletion.id}",
                EXPIRY_ATTRIBUTE: deletion.due + _KEPT_SECONDS,
            }
        )

    def due(self, now: float) -> Iterator[Deletion]:
        """Iterate over the deletions whose time has come, oldest first."""
        for values in self._table.in_state(_STATE, before=f"{int(now) + 1:012d}"):
            # The index lags behind the table: the file may have got a later time.
            current = self._table.get(_identifier(values["id"]))
            if current is not None and current["due"] <= now:
                yield Deletion.from_values(current)

    def forget(self, deletion: Deletion) -> None:
        self._table.delete(_identifier(deletion.id))


def intermediate_objects(job: str, *, ended_at: int) -> Deletion:
    """Return the deletion of what a job that has ended for good does not need any more."""
    prefix = JobKeys(job).prefix
    folders = ("segments", "shards", "chunks", "parts", "rest", "joined", "published")
    return Deletion(job, ended_at + _AFTER_END_SECONDS, tuple(f"{prefix}{each}/" for each in folders))


def _identifier(name: str) -> str:
    return f"deletion#{name}"


@dataclass(frozen=True, slots=True)
class FilePage:
    """One page of a team's list of files."""

    files: tuple[FileRecord, ...]
    has_more: bool
    """Whether more pages follow."""


class FileTable:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._deletions = DeletionTable(table)

    def put(self, record: FileRecord) -> None:
        """Write the record of a file, unless it exists.

        record: The record. Its object already exists.
        """
        self._plan_deletion(record)
        self._table.put_new(_item(record), now=record.created_at)

    def replace(self, record: FileRecord) -> None:
        """Write the record of a file, and replace any earlier one."""
        self._plan_deletion(record)
        self._table.put(_item(record))

    def _plan_deletion(self, record: FileRecord) -> None:
        """Have the object of a file deleted when the file expires."""
        if record.expires_at is not None:
            self._deletions.put(Deletion(record.id, record.expires_at, _prefixes(record)))

    def get(self, identifier: str, *, team: str, now: int) -> FileRecord | None:
        """Return a file of a team; None if it does not exist or has expired."""
        if not identifiers.is_identifier(identifier, "file"):
            return None
        values = self._table.get(identifier)
        if values is None or values["team"] != team:
            return None
        record = FileRecord.from_values(values)
        return None if record.expires_at is not None and record.expires_at <= now else record

    def of_team(
        self,
        team: str,
        *,
        after: str | None,
        limit: int,
        newest_first: bool,
        purpose: str | None,
        now: int,
    ) -> FilePage:
        """Return one page of a team's files.

        after: Identifier of the file before the first one; None for the start of the list.
        newest_first: Whether the list starts with the newest file.
        purpose: Purpose of the files; None for all.
        now: Seconds since 1970. Expired files are not shown.
        Raises UnknownCursorError if the team has no such file.
        """
        if after is not None and not identifiers.is_identifier(after, "file"):
            raise UnknownCursorError(after)

        def is_shown(values: Mapping[str, Any]) -> bool:
            is_there = values["expires_at"] is None or values["expires_at"] > now
            return is_there and purpose in (None, values["purpose"])

        page = self._table.page(
            _collection(team), after=after, limit=limit, newest_first=newest_first, keep=is_shown
        )
        return FilePage(tuple(map(FileRecord.from_values, page.records)), page.has_more)

    def delete(self, record: FileRecord) -> None:
        """Delete a file's record, and plan the deletion of its objects."""
        self._deletions.put(Deletion(record.id, int(time.time()), _prefixes(record)))
        self._table.delete(record.id)


class UploadTable:
    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, record: UploadRecord, *, forgotten_at: int) -> None:
        self._table.put(
            {ID_ATTRIBUTE: record.id, "record": record.to_values(), EXPIRY_ATTRIBUTE: forgotten_at}
        )

    def get(self, identifier: str, *, team: str) -> UploadRecord | None:
        """Return an upload of a team; None if it does not exist."""
        if not identifiers.is_identifier(identifier, "upload"):
            return None
        values = self._table.get(identifier)
        return UploadRecord.from_values(values) if values is not None and values["team"] == team else None

    def finish(
        self, record: UploadRecord, status: UploadStatus, *, file_id: str | None = None
    ) -> UploadRecord:
        """Complete or cancel an upload and return it. Of two concurrent calls, one is refused.

        status: Final status.
        file_id: The file made from the upload.
        Raises StateConflictError if the upload is no longer pending.
        """
        changes: Mapping[str, Any] = {"status": status, "file_id": file_id}
        return UploadRecord.from_values(
            self._table.change(record.id, changes, expected={"status": ["pending"]})
        )


def _prefixes(record: FileRecord) -> tuple[str, ...]:
    """Return the prefixes of the objects that end with a file: its own, and the images that its rows name."""
    if record.purpose == "batch_output":
        keys = JobKeys.of(record.key)
        if record.key == keys.output:
            return record.key, keys.images
    return (record.key,)


def _item(record: FileRecord) -> dict[str, Any]:
    item: dict[str, Any] = {
        ID_ATTRIBUTE: record.id,
        "record": record.to_values(),
        TEAM_INDEX_KEY: _collection(record.team),
        ORDER_ATTRIBUTE: f"{time.time_ns():019d}#{record.id}",
    }
    if record.expires_at is not None:
        item[EXPIRY_ATTRIBUTE] = record.expires_at
    return item


def _collection(team: str) -> str:
    """Return the index key of a team's list of files."""
    return f"{team}#file"
