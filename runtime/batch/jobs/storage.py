"""Objects of files and jobs in the batch bucket."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

#: For how long an address of a file's content can be used, in seconds: it is followed at once.
ADDRESS_SECONDS: Final = 300
# S3 deletes no more objects in one request.
_DELETED_AT_ONCE: Final = 1000
_GONE: Final = frozenset({"NoSuchKey", "NoSuchVersion", "PreconditionFailed"})
_JOINING: Final = TransferConfig(multipart_chunksize=8 * 2**20, max_concurrency=8)


class WrongContentError(Exception):
    """Content that is not what its sender said."""


class Storage:
    """The bucket.

    Parameters
    ----------
    client
        A boto3 client of S3.
    bucket
        The bucket's name.
    """

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self.bucket: Final = bucket

    def put(self, key: str, content: bytes, *, content_type: str = "application/octet-stream") -> None:
        """Write an object.

        Parameters
        ----------
        key
            Its key.
        content, content_type
            What it holds, and of which kind that is.
        """
        self._client.put_object(Bucket=self.bucket, Key=key, Body=content, ContentType=content_type)

    def read_version(self, bucket: str, key: str, *, etag: str, version: str | None) -> bytes | None:
        """Return what an object held when it was written; None if it holds something else by now, or is gone.

        Parameters
        ----------
        bucket, key
            The object.
        etag, version
            What it was; a bucket without versions has none.
        """
        which = {"VersionId": version} if version else {}
        return self._content(Bucket=bucket, Key=key, IfMatch=f'"{etag}"', **which)

    def read_beginning(self, bucket: str, key: str, most_bytes: int) -> bytes:
        """Return the first bytes of an object that is not empty; none if it is gone.

        Parameters
        ----------
        bucket, key
            The object.
        most_bytes
            How many, at most.
        """
        return self._content(Bucket=bucket, Key=key, Range=f"bytes=0-{most_bytes - 1}") or b""

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return bytes by key of every object below a prefix.

        Parameters
        ----------
        prefix
            The prefix.
        """
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return {entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", [])}

    def join(self, keys: Sequence[str], destination: str, *, md5: str | None) -> None:
        """Make one object of many, in bounded memory, and not if it is not what was announced.

        The bytes pass through this process because S3 joins no part of less than 5 MiB by itself
        (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).

        Parameters
        ----------
        keys
            Keys of the objects, in their order.
        destination
            Key of the one.
        md5
            Digest of all bytes in hex; None where it was not announced.

        Raises
        ------
        WrongContentError
            If the digest is another.
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
        """Delete objects, those that are there.

        Parameters
        ----------
        keys
            Their keys.
        bucket
            Their bucket, where it is another one.
        """
        left = list(keys)
        while left:
            batch, left = left[:_DELETED_AT_ONCE], left[_DELETED_AT_ONCE:]
            self._client.delete_objects(
                Bucket=bucket or self.bucket,
                Delete={"Objects": [{"Key": key} for key in batch], "Quiet": True},
            )

    def address(self, bucket: str, key: str) -> str:
        """Return an address at which an object can be read for a while by who knows it.

        Parameters
        ----------
        bucket, key
            The object.
        """
        return str(
            self._client.generate_presigned_url(
                "get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=ADDRESS_SECONDS
            )
        )

    def _content(self, **request: str) -> bytes | None:
        """Return what an object holds; None if it is gone."""
        try:
            answer = self._client.get_object(**request)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _GONE:
                raise
            return None
        content: bytes = answer["Body"].read()
        return content


class _CheckedStream:
    """Bytes of many objects as one; its end raises if they are not those that were announced.

    An upload that reads from it therefore never completes with wrong content.
    """

    def __init__(self, contents: Iterator[bytes], md5: str | None) -> None:
        self._contents = contents
        self._md5 = md5
        self._hash = hashlib.md5(usedforsecurity=False)
        self._rest = b""

    def read(self, amount: int = -1) -> bytes:
        """Return as many bytes as asked for, all if negative, fewer only at the end."""
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
