"""Records of files and of uploads that become files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inference_contracts.json_record import JsonRecord

Purpose = Literal["batch", "batch_output"]
UploadStatus = Literal["pending", "completed", "cancelled"]


@dataclass(frozen=True, slots=True)
class FileRecord(JsonRecord):
    """A file of a team. Times are whole seconds since 1970.

    Parameters
    ----------
    id, team
        The file's identifier and its team.
    filename
        The team's name for it.
    purpose
        Whether the file is an input or a result of batches.
    bucket, key
        Its place in S3.
    created_at, expires_at
        Time of creation, and time of deletion; None if the file is kept.
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


@dataclass(frozen=True, slots=True)
class UploadRecord(JsonRecord):
    """A file that is uploaded in parts. Times are whole seconds since 1970.

    Parameters
    ----------
    id, team
        The upload's identifier and its team.
    filename, size
        Name of the future file, and its size in bytes.
    created_at, expires_at
        Start of the upload, and time until which parts are accepted.
    file_seconds
        Lifetime of the future file, in seconds.
    file_id
        The file made from the upload.
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
