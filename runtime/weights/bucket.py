"""The copy in S3: existing files, uploads in bounded memory, and the manifest that marks it complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import boto3
from botocore.config import Config
from s3transfer.manager import TransferConfig, TransferManager

from weights.settings import Copy, MirrorSettings

#: Object metadata with the digest that the file was checked against before the upload completed.
DIGEST = "digest"
# Adaptive: slows down if S3 throttles requests.
_RETRIES = Config(retries={"mode": "adaptive", "max_attempts": 10})


class File(Protocol):
    """A file, as known before it is copied."""

    @property
    def path(self) -> str:
        """Path below the prefix."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def digest(self) -> str:
        """Algorithm and digest."""


class Readable(Protocol):
    """A sequential stream of bytes."""

    def read(self, amount: int = -1, /) -> bytes:
        """Return the requested number of bytes, or fewer at the end."""


class WeightsCopy:
    """One copy below its prefix."""

    def __init__(self, copy: Copy) -> None:
        self._copy = copy
        self.client: Any = boto3.client("s3", config=_RETRIES)

    def holds(self, file: File, sizes: dict[str, int]) -> bool:
        """Return whether the copy has a file, with its size and the digest that it was checked against."""
        key = self._copy.key(file.path)
        if sizes.get(key) != file.size:
            return False
        head = self.client.head_object(Bucket=self._copy.bucket, Key=key)
        return bool(head["Metadata"].get(DIGEST) == file.digest)

    def sizes(self) -> dict[str, int]:
        """Return the size of every object of the copy, by key. Incomplete uploads are not objects."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self._copy.bucket, Prefix=f"{self._copy.prefix}/"
        )
        return {entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", [])}

    def is_complete(self) -> bool:
        """Return whether the manifest exists.

        This lists the prefix instead of requesting the object. For a missing object, S3 refuses the request
        of a
        role that may list only one prefix.
        """
        key = self._copy.manifest_key
        found = self.client.list_objects_v2(Bucket=self._copy.bucket, Prefix=key, MaxKeys=1)
        return key in {entry["Key"] for entry in found.get("Contents", [])}

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Mark the copy as complete."""
        self.client.put_object(
            Bucket=self._copy.bucket,
            Key=self._copy.manifest_key,
            Body=json.dumps(content, indent=1).encode(),
            ContentType="application/json",
            ChecksumAlgorithm="SHA256",
        )

    def delete_manifest(self) -> None:
        """Mark the copy as incomplete."""
        self.client.delete_object(Bucket=self._copy.bucket, Key=self._copy.manifest_key)

    @contextmanager
    def uploads(self, settings: MirrorSettings) -> Iterator[CopyUploads]:
        """Open several uploads. The first error ends all of them, and their parts are deleted.

        Parameters
        ----------
        settings
            Number of parallel uploads, and size of their parts.
        """
        limits = TransferConfig(
            multipart_threshold=settings.part_bytes,
            multipart_chunksize=settings.part_bytes,
            max_submission_concurrency=settings.files_at_once,
            max_request_concurrency=settings.parts_in_memory,
            max_in_memory_upload_chunks=settings.parts_in_memory,
        )
        with TransferManager(self.client, limits) as manager:
            yield CopyUploads(manager, self._copy)


class CopyUploads:
    """Uploads that share one memory limit."""

    def __init__(self, manager: TransferManager, copy: Copy) -> None:
        self._manager = manager
        self._copy = copy

    def start(self, file: File, content: Readable) -> Any:
        """Start an upload. The future's `result` waits for it and raises its error.

        S3 compares the checksum of every part with the bytes that arrived.

        Parameters
        ----------
        content
            Its bytes. An error while reading ends the upload.
        """
        return self._manager.upload(
            content,
            self._copy.bucket,
            self._copy.key(file.path),
            extra_args={"ChecksumAlgorithm": "SHA256", "Metadata": {DIGEST: file.digest}},
        )
