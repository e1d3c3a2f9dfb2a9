"""Records of files and of uploads that become files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Purpose = Literal["batch", "batch_output"]
UploadStatus = Literal["pending", "completed", "cancelled"]


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file of a team; times are whole seconds since 1970.

    Parameters
    ----------
    id, team
        Its identifier and whose it is.
    filename
        The team's name for it.
    purpose
        Input of batches, or what came out of one.
    size
        Bytes.
    bucket, key
        Where it lies in S3.
    created_at, expires_at
        When it was made, and when it goes; None where it stays.
    """

    id: str
    team: str
    filename: str
    purpose: Purpose
    size: int
    bucket: str
    key: str
    created_at: int
    expires_at: int | None = None

    def to_values(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return asdict(self)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> FileRecord:
        """Read a record.

        Raises
        ------
        TypeError
            If it is not such a record.
        """
        return cls(**values)


@dataclass(frozen=True, slots=True)
class UploadRecord:
    """A file that comes in parts; times are whole seconds since 1970.

    Parameters
    ----------
    id, team
        Its identifier and whose it is.
    filename, size
        What the file will be called, and its bytes.
    created_at, expires_at
        When it was begun, and until when parts are taken.
    file_seconds
        For how many seconds the file will stay.
    status
        Where it is.
    file_id
        The file that it became.
    """

    id: str
    team: str
    filename: str
    size: int
    created_at: int
    expires_at: int
    file_seconds: int
    status: UploadStatus = "pending"
    file_id: str | None = None

    def to_values(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return asdict(self)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> UploadRecord:
        """Read a record.

        Raises
        ------
        TypeError
            If it is not such a record.
        """
        return cls(**values)
