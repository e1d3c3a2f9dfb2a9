"""Records of files and of uploads that become files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inference_contracts.json_record import JsonRecord

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
