"""Objects in S3 for the worker: reads, lists, creates once, and writes in parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from batch.s3_errors import code_of, explanation

# AWS clients for asyncio: boto3's blocking calls run in threads.
#
# A worker makes few AWS calls (one chunk per second, one heartbeat per shard) and many requests to the
# endpoint. So AWS calls use AWS's own SDK with its retries, and endpoint requests use the event loop.

#: Parallel calls: one poll, and for each shard a read, a commit and a heartbeat.
_THREADS: Final = 32
# Not adaptive: a throttled commit would slow down the reading of shards too. A read that hangs is given up
# soon, because it resumes at the same byte. The longest call is the queue's poll of 20 s.
_CONFIGURATION: Final = Config(
    retries={"mode": "standard", "max_attempts": 10},
    connect_timeout=5,
    read_timeout=30,
    max_pool_connections=_THREADS,
)

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Clients:
    """One client per AWS service."""

    s3: Any
    sqs: Any
    stepfunctions: Any
    dynamodb: Any
    secretsmanager: Any = None
    """None for a worker that reads no keys of the front door."""


def make_clients(*, reads_keys: bool = False) -> Clients:
    """Return clients with boto3's default settings.

    reads_keys: Whether the worker reads keys of the front door.
    """
    session = boto3.session.Session()
    services = ("s3", "sqs", "stepfunctions", "dynamodb", *(["secretsmanager"] if reads_keys else []))
    return Clients(*(session.client(service, config=_CONFIGURATION) for service in services))


def use_threads() -> None:
    """Give the running event loop enough threads for `in_thread`."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "aws"))


def is_condition_refused(error: BotoCoreError | ClientError) -> bool:
    """Return whether DynamoDB refused a write because of its condition."""
    return (
        isinstance(error, ClientError)
        and error.response["Error"]["Code"] == "ConditionalCheckFailedException"
    )


async def in_thread(function: Callable[P, R], *words: P.args, **options: P.kwargs) -> R:
    """Run a blocking function in a thread.

    function: For example a method of a client.
    """
    return await asyncio.to_thread(function, *words, **options)


#: Smallest part that S3 accepts, except for the last
#: (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).
_PART_BYTES: Final = 8 * 2**20
_CONFLICT_SECONDS: Final = 0.1


class MissingObjectError(Exception):
    """A required object is missing. The message names it."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object that was read completely."""

    body: bytes
    metadata: Mapping[str, str]
    """Metadata set by its writer."""
    served_at: float
    """Time of S3's response by S3's clock, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class OpenObject:
    """An object that is being read."""

    stream: Any
    """Botocore's stream of its bytes."""
    size: int
    """Number of bytes in the stream."""
    content_type: str
    """Content type set by its writer."""


class BucketClient:
    """Objects of one bucket.

    client: boto3's client of S3.
    """

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    async def read(self, key: str) -> StoredObject | None:
        """Return a small object, or None if there is none."""
        try:
            return await in_thread(self._read, key)
        except ClientError as error:
            if code_of(error) == "NoSuchKey":
                return None
            raise

    async def open(self, key: str, first: int = 0) -> OpenObject:
        """Open an object for reading.

        first: Index of the first byte to read.
        Raises MissingObjectError if the object is missing.
        """
        where = {"Range": f"bytes={first}-"} if first else {}
        try:
            answer = await in_thread(self._client.get_object, Bucket=self._name, Key=key, **where)
        except ClientError as error:
            if code_of(error) in {"NoSuchKey", "NoSuchBucket"}:
                raise MissingObjectError(explanation(f"s3://{self._name}/{key}", error)) from error
            raise
        return OpenObject(answer["Body"], answer["ContentLength"], answer.get("ContentType", ""))

    async def keys(self, prefix: str) -> list[str]:
        """Return the keys below a prefix, in order.

        prefix: Prefix with a slash at its end.
        """
        return await in_thread(self._keys, prefix)

    async def create(self, key: str, body: bytes, metadata: Mapping[str, str]) -> bool:
        """Write an object and return True. If it already exists, leave it and return False.

        False is also possible for an object that this call wrote: if the response is lost, botocore repeats
        the request.

        metadata: Metadata to set.
        """
        while True:
            try:
                await in_thread(
                    self._client.put_object,
                    Bucket=self._name,
                    Key=key,
                    Body=body,
                    Metadata=dict(metadata),
                    IfNoneMatch="*",
                )
            except ClientError as error:
                if code_of(error) == "PreconditionFailed":
                    return False
                # Another writer writes the same key at this moment, and S3 asks for a retry
                # (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html, If-None-Match).
                if code_of(error) != "ConditionalRequestConflict":
                    raise
                await asyncio.sleep(_CONFLICT_SECONDS)
            else:
                return True

    async def write(self, key: str, body: bytes) -> None:
        """Write an object, and replace any earlier one."""
        await in_thread(self._client.put_object, Bucket=self._name, Key=key, Body=body)

    def write_now(self, key: str, body: bytes, *, content_type: str) -> str:
        """Write an object as `write` does, in the calling thread, and return its address.

        Its size is at most that of an answer, far below the 5 GB that S3 accepts in one request
        (https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html).

        content_type: Media type of the object.
        """
        self._client.put_object(Bucket=self._name, Key=key, Body=body, ContentType=content_type)
        return f"s3://{self._name}/{key}"

    def written_in_parts(self, key: str) -> PartWriter:
        """Return a writer for an object of any size.

        The object exists after the ``with`` block has ended without error.
        """
        return PartWriter(self._client, self._name, key)

    def _read(self, key: str) -> StoredObject:
        answer = self._client.get_object(Bucket=self._name, Key=key)
        date = answer["ResponseMetadata"]["HTTPHeaders"]["date"]
        return StoredObject(
            answer["Body"].read(), answer["Metadata"], parsedate_to_datetime(date).timestamp()
        )

    def _keys(self, prefix: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


@dataclass(slots=True)
class PartWriter:
    """Writes an object in parts, with a bounded number of bytes in memory."""

    client: Any
    bucket: str
    key: str
    _buffer: bytearray = field(default_factory=bytearray)
    _upload: dict[str, str] = field(default_factory=dict)
    _parts: list[dict[str, Any]] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exception is None:
            await self._complete()
        elif self._upload:
            await in_thread(self.client.abort_multipart_upload, **self._upload)

    async def add(self, content: bytes) -> None:
        self._buffer += content
        if len(self._buffer) >= _PART_BYTES:
            await self._send()

    async def _send(self) -> None:
        body = bytes(self._buffer)
        self._buffer.clear()
        await in_thread(self._send_part, body)

    def _send_part(self, body: bytes) -> None:
        if not self._upload:
            where = {"Bucket": self.bucket, "Key": self.key}
            begun = self.client.create_multipart_upload(**where)
            self._upload = {**where, "UploadId": begun["UploadId"]}
        number = len(self._parts) + 1
        answer = self.client.upload_part(**self._upload, PartNumber=number, Body=body)
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"]})

    async def _complete(self) -> None:
        if not self._upload:
            where = {"Bucket": self.bucket, "Key": self.key}
            await in_thread(self.client.put_object, **where, Body=bytes(self._buffer))
            return
        if self._buffer:
            await self._send()
        await in_thread(
            self.client.complete_multipart_upload, **self._upload, MultipartUpload={"Parts": self._parts}
        )
