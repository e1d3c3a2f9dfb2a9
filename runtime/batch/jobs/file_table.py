"""Files and uploads in the table. A team never sees those of another team."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batch.jobs import identifiers
from batch.jobs.deletions import Deletion, DeletionTable
from batch.jobs.file_records import FileRecord, UploadRecord, UploadStatus
from batch.jobs.record_table import Table, UnknownCursorError
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_names import (
    EXPIRY_ATTRIBUTE,
    ID_ATTRIBUTE,
    ORDER_ATTRIBUTE,
    TEAM_INDEX_KEY,
)


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
