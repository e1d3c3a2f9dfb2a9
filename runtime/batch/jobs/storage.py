"""Objects of files and jobs in the batch bucket."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

#: Lifetime of a presigned address, in seconds. Clients follow it at once.
ADDRESS_SECONDS: Final = 300
# Most objects that S3 deletes in one request.
_DELETED_AT_ONCE: Final = 1000
_GONE: Final = frozenset({"NoSuchKey", "NoSuchVersion", "PreconditionFailed"})
_JOINING: Final = TransferConfig(multipart_chunksize=8 * 2**20, max_concurrency=8)


class WrongContentError(Exception):
    """The content differs from what its sender announced."""


class Storage:
    """The batch bucket.

    client: A boto3 client of S3.
    """

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self.bucket: Final = bucket

    def put(self, key: str, content: bytes, *, content_type: str = "application/octet-stream") -> None:
        self._client.put_object(Bucket=self.bucket, Key=key, Body=content, ContentType=content_type)

    def read_version(self, bucket: str, key: str, *, etag: str, version: str | None) -> bytes | None:
        """Return the content of one version of an object; None if the object has changed or is gone.

        etag, version: ETag and version. A bucket without versioning has no version.
        """
        which = {"VersionId": version} if version else {}
        return self._content(Bucket=bucket, Key=key, IfMatch=f'"{etag}"', **which)

    def read_beginning(self, bucket: str, key: str, max_bytes: int) -> bytes:
        """Return the first bytes of an object that is not empty; None if it is gone.

        max_bytes: How many, at most.
        """
        return self._content(Bucket=bucket, Key=key, Range=f"bytes=0-{max_bytes - 1}") or b""

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the sizes in bytes of all objects below a prefix, by key."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return {entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", [])}

    def join(self, keys: Sequence[str], destination: str, *, md5: str | None) -> None:
        """Join objects into one, in bounded memory. Fails if the content differs from the announced digest.

        The bytes pass through this process, because S3 itself joins no parts below 5 MiB
        (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).

        keys: Keys of the objects, in order.
        destination: Key of the joined object.
        md5: Digest of all bytes in hex; None if none was announced.
        Raises WrongContentError if the digest differs.
        """
        contents = (self._client.get_object(Bucket=self.bucket, Key=key)["Body"].read() for key in keys)
        self._client.upload_fileobj(
            _CheckedStream(contents, md5),
            self.bucket,
            destination,
            ExtraArgs={"ContentType": "application/octet-stream"},
            Config=_JOINING,
        )

    def delete(self, keys: Iterable[str], *, bucket: str | None = None) -> None:
        """Delete objects. Missing ones are ignored.

        bucket: Bucket of the objects; the batch bucket by default.
        """
        left = list(keys)
        while left:
            batch, left = left[:_DELETED_AT_ONCE], left[_DELETED_AT_ONCE:]
            self._client.delete_objects(
                Bucket=bucket or self.bucket,
                Delete={"Objects": [{"Key": key} for key in batch], "Quiet": True},
            )

    def address(self, bucket: str, key: str, *, seconds: int = ADDRESS_SECONDS) -> str:
        """Return a presigned address at which anyone can read an object for a short time."""
        return str(
            self._client.generate_presigned_url(
                "get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=seconds
            )
        )

    def _content(self, **request: str) -> bytes | None:
        """Return the content of an object; None if it is gone."""
        try:
            answer = self._client.get_object(**request)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _GONE:
                raise
            return None
        content: bytes = answer["Body"].read()
        return content


class _CheckedStream:
    """Many objects as one stream of bytes.

    At its end, it raises if the digest differs from the announced one.

    So an upload that reads from it never completes with wrong content.
    """

    def __init__(self, contents: Iterator[bytes], md5: str | None) -> None:
        self._contents = contents
        self._md5 = md5
        self._hash = hashlib.md5(usedforsecurity=False)
        self._rest = b""

    def read(self, amount: int = -1) -> bytes:
        """Read at most this many bytes; all if negative. Returns fewer only at the end."""
        while amount < 0 or len(self._rest) < amount:
            content = next(self._contents, None)
            if content is None:
                if self._md5 is not None and self._hash.hexdigest() != self._md5:
                    raise WrongContentError(self._hash.hexdigest())
                break
            self._hash.update(content)
            self._rest += content
        size = len(self._rest) if amount < 0 else amount
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
