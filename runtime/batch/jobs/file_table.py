"""Files and uploads in the table: nobody is told of one that another team has."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batch.jobs import identifiers
from batch.jobs.files import FileRecord, UploadRecord, UploadStatus
from batch.jobs.table import Table, UnknownCursorError


@dataclass(frozen=True, slots=True)
class FilePage:
    """A part of a team's list of files.

    Parameters
    ----------
    files
        The files.
    has_more
        Whether the list goes on.
    """

    files: tuple[FileRecord, ...]
    has_more: bool


class FileTable:
    """The files.

    Parameters
    ----------
    table
        Where they are.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, record: FileRecord) -> None:
        """Write the record of a file, unless it is there.

        Parameters
        ----------
        record
            The record; its object is there already.
        """
        self._table.put_new(_item(record), now=record.created_at)

    def replace(self, record: FileRecord) -> None:
        """Write the record of a file, whatever is there.

        Parameters
        ----------
        record
            The record; its object is there already.
        """
        self._table.put(_item(record))

    def get(self, identifier: str, *, team: str, now: int) -> FileRecord | None:
        """Return a file of a team; None if it has none of this name, or has it no more.

        Parameters
        ----------
        identifier
            The file's identifier.
        team
            The team.
        now
            Seconds since 1970.
        """
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
        """Return a part of a team's files.

        Parameters
        ----------
        team
            The team.
        after
            Identifier of the file before the first one; None for the beginning.
        limit
            Most files.
        newest_first
            Whether the newest comes first.
        purpose
            What the files are for; None for all.
        now
            Seconds since 1970: what has expired is not shown.

        Raises
        ------
        UnknownCursorError
            If the team has no such file.
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
        """Delete the record of a file.

        Parameters
        ----------
        record
            The record.
        """
        self._table.delete(record.id)


class UploadTable:
    """The uploads.

    Parameters
    ----------
    table
        Where they are.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, record: UploadRecord, *, forgotten_at: int) -> None:
        """Write the record of an upload.

        Parameters
        ----------
        record
            The record.
        forgotten_at
            When DynamoDB deletes it, in seconds since 1970.
        """
        self._table.put({"id": record.id, "record": record.to_values(), "expires": forgotten_at})

    def get(self, identifier: str, *, team: str) -> UploadRecord | None:
        """Return an upload of a team; None if it has none of this name.

        Parameters
        ----------
        identifier
            The upload's identifier.
        team
            The team.
        """
        if not identifiers.is_identifier(identifier, "upload"):
            return None
        values = self._table.get(identifier)
        return UploadRecord.from_values(values) if values is not None and values["team"] == team else None

    def finish(
        self, record: UploadRecord, status: UploadStatus, *, file_id: str | None = None
    ) -> UploadRecord:
        """Complete or cancel an upload and return it; of two that try at once, one is refused.

        Parameters
        ----------
        record
            The record.
        status
            What becomes of it.
        file_id
            The file that it became.

        Raises
        ------
        StateConflictError
            If it is no longer pending.
        """
        changes: Mapping[str, Any] = {"status": status, "file_id": file_id}
        return UploadRecord.from_values(
            self._table.change(record.id, changes, expected={"status": ["pending"]})
        )


def _item(record: FileRecord) -> dict[str, Any]:
    """Return the item of a file."""
    item: dict[str, Any] = {
        "id": record.id,
        "record": record.to_values(),
        "collection": _collection(record.team),
        "order": f"{time.time_ns():019d}#{record.id}",
    }
    if record.expires_at is not None:
        item["expires"] = record.expires_at
    return item


def _collection(team: str) -> str:
    """Return the name of a team's list of files."""
    return f"{team}#file"
