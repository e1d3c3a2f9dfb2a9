"""Objects in S3 for the functions of the state machine."""

from __future__ import annotations

import io
import itertools
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NoReturn, cast

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from batch.s3_errors import S3_FAILURES, AwsBusyError, S3Meaning, code_of, explanation, meaning_of

# Plans how parts become one object: S3 copies large parts, and the function reads small ones.
#
# S3 accepts 10,000 parts of 5 MiB to 5 GiB. Only the last part may be smaller
# (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).

MAX_PARTS = 10_000
MIN_PART_BYTES = 5 * 2**20
MAX_PART_BYTES = 5 * 2**30
#: Smallest part that is read and written.
_READ_PART_BYTES = 16 * 2**20
#: Parts reserved for content that is read, if there are more objects than parts.
_READ_PARTS = 1_000


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """A byte range of an object that S3 copies by itself."""

    key: str
    start: int
    """First byte."""
    end: int
    """The byte after the last."""


@dataclass(frozen=True, slots=True)
class ReadPart:
    """Objects that are read and then written as one part."""

    keys: Sequence[str]


def plan_parts(sizes: Mapping[str, int]) -> tuple[list[CopiedPart], list[ReadPart]]:
    """Return the parts that join objects. Parts to read follow parts to copy.

    sizes: Sizes in bytes by key. Empty objects are left out.
    """
    copied = {key: list(_ranges(key, size)) for key, size in sizes.items() if size >= MIN_PART_BYTES}
    read = {key: size for key, size in sizes.items() if 0 < size < MIN_PART_BYTES}
    joined = list(_joined(read, _READ_PART_BYTES))
    if sum(map(len, copied.values())) + len(joined) > MAX_PARTS:
        room = MAX_PARTS - _READ_PARTS
        for key in sorted(copied, key=lambda key: sizes[key], reverse=True):
            room -= len(copied[key])
            if room < 0:
                del copied[key]
                read[key] = sizes[key]
        minimum = max(_READ_PART_BYTES, math.ceil(sum(read.values()) / _READ_PARTS))
        joined = list(_joined(read, minimum))
    return [part for parts in copied.values() for part in parts], joined


def _ranges(key: str, size: int) -> Iterator[CopiedPart]:
    """Iterate over an object's bytes in as few equal ranges as possible."""
    count = math.ceil(size / MAX_PART_BYTES)
    for number in range(count):
        yield CopiedPart(key, size * number // count, size * (number + 1) // count)


def _joined(sizes: Mapping[str, int], minimum: int) -> Iterator[ReadPart]:
    """Iterate over runs of objects that reach the smallest part size. The last run may be smaller."""
    keys: list[str] = []
    held = 0
    for key, size in sizes.items():
        keys.append(key)
        held += size
        if held >= minimum:
            yield ReadPart(keys)
            keys, held = [], 0
    if keys:
        yield ReadPart(keys)


_CHUNK_BYTES = 2**20
_COPIES_AT_ONCE = 16
# Each call has a part in memory, twice.
_WRITES_AT_ONCE = 8
# Adaptive: slows down if S3 asks for it.
_RETRIES = Config(max_pool_connections=_COPIES_AT_ONCE, retries={"mode": "adaptive", "max_attempts": 10})
#: Waits before a denied input is read again. Its policy or the function's role may just have been changed.
_DENIED_SECONDS: Final = (2.0, 8.0, 30.0)


class InputFaultError(Exception):
    """An input cannot be read, however often it is tried. The message names it, the reason and a remedy."""


class Objects:
    """The batch bucket, and inputs of jobs in other buckets.

    bucket: Name of the batch bucket.
    """

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._client: Any = boto3.client("s3", config=_RETRIES)

    def size(self, bucket: str, key: str) -> tuple[int, str]:
        """Return the size in bytes and the ETag of an input that can be read.

        A HEAD request would not tell: its errors have no code, and it succeeds for an archived object
        (Amazon S3 API Reference, HeadObject).

        Raises InputFaultError if it cannot be read. Raises AwsBusyError if S3 cannot answer now.
        """
        answer = self._of_input(bucket, key)
        answer["Body"].close()
        return int(answer["ContentLength"]), str(answer["ETag"])

    def stream(self, bucket: str, key: str, *, start: int, etag: str) -> Iterator[bytes]:
        """Iterate over the content of an input, starting at a byte.

        Raises InputFaultError if it has changed, or cannot be read any more. Raises AwsBusyError if S3 cannot
        answer now.
        """
        answer = self._of_input(bucket, key, Range=f"bytes={start}-", IfMatch=etag)
        try:
            with closing(answer["Body"]) as body:
                yield from body.iter_chunks(_CHUNK_BYTES)
        except S3_FAILURES as error:
            _raise_meaning(bucket, key, error)

    def part_of(self, bucket: str, key: str, *, etag: str) -> Callable[[int, int], bytes]:
        """Return a function that reads a byte range of an input; the end is excluded.

        The function raises what `stream` raises.
        """

        def part(start: int, end: int) -> bytes:
            answer = self._of_input(bucket, key, Range=f"bytes={start}-{end - 1}", IfMatch=etag)
            try:
                with closing(answer["Body"]) as body:
                    return cast(bytes, body.read())
            except S3_FAILURES as error:
                _raise_meaning(bucket, key, error)

        return part

    def _of_input(self, bucket: str, key: str, **options: str) -> Any:
        """Return S3's answer to a request for an input. A denial is tried again for a minute."""
        waits = iter(_DENIED_SECONDS)
        while True:
            try:
                return self._client.get_object(Bucket=bucket, Key=key, **options)
            except S3_FAILURES as error:
                wait = next(waits, None) if meaning_of(error) is S3Meaning.DENIED else None
                if wait is None:
                    _raise_meaning(bucket, key, error)
            time.sleep(random.uniform(wait / 2, wait))  # noqa: S311 - no secret

    def read(self, key: str) -> bytes:
        """Return a small object of the batch bucket. Raises ClientError if the object is missing."""
        with closing(self._client.get_object(Bucket=self._bucket, Key=key)["Body"]) as body:
            return cast(bytes, body.read())

    def pieces(self, key: str) -> Iterator[bytes]:
        """Iterate over the content of an object of the batch bucket.

        Raises ClientError if the object is missing.
        """
        with closing(self._client.get_object(Bucket=self._bucket, Key=key)["Body"]) as body:
            yield from body.iter_chunks(_CHUNK_BYTES // 16)

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the sizes in bytes of all objects of the batch bucket below a prefix, by key."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        return {entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", [])}

    def delete_below(self, prefix: str, *, has_time: Callable[[], bool]) -> bool:
        """Delete the objects of the batch bucket below a prefix, and return whether all are deleted.

        has_time: Returns whether another thousand objects may be deleted.
        Raises RuntimeError if S3 does not delete an object.
        """
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        for page in pages:
            keys = [{"Key": entry["Key"]} for entry in page.get("Contents", [])]
            if not keys:
                continue
            if not has_time():
                return False
            answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
            if answer.get("Errors"):
                raise RuntimeError(f"S3 did not delete {answer['Errors'][0]}")
        return True

    def write(self, key: str, content: bytes, *, content_type: str = "application/json") -> None:
        self._client.put_object(
            Bucket=self._bucket, Key=key, Body=content, ContentType=content_type, ChecksumAlgorithm="SHA256"
        )

    def write_stream(
        self, key: str, pieces: Iterable[bytes], *, content_type: str = "application/jsonl"
    ) -> None:
        """Write an object of unknown size to the batch bucket, in bounded memory."""
        stream = cast(BinaryIO, io.BufferedReader(_Pieces(pieces), _CHUNK_BYTES))
        self._client.upload_fileobj(stream, self._bucket, key, ExtraArgs={"ContentType": content_type})

    def join(self, sources: Mapping[str, int], target: str) -> None:
        """Join objects of the batch bucket into one, in any order. S3 copies large ones by itself.

        target: Key of the joined object.
        """
        copied, read = plan_parts(sources)
        if not copied and len(read) <= 1:
            self.write_stream(
                target, (piece for part in read for key in part.keys for piece in self.pieces(key))
            )
            return
        upload = {"Bucket": self._bucket, "Key": target}
        answer = self._client.create_multipart_upload(**upload, ContentType="application/jsonl")
        upload["UploadId"] = answer["UploadId"]
        try:
            parts = self._make_parts(upload, sources, copied, read)
            self._client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        except BaseException:
            # The parts of an unfinished upload cost money until it is aborted.
            self._client.abort_multipart_upload(**upload)
            raise

    def _make_parts(
        self,
        upload: Mapping[str, str],
        sources: Mapping[str, int],
        copied: Sequence[CopiedPart],
        read: Sequence[ReadPart],
    ) -> list[dict[str, Any]]:
        """Create the parts of an upload in parallel."""

        def copy(number: int, part: CopiedPart) -> dict[str, Any]:
            # S3 copies a range only from objects above the smallest part size.
            is_whole = part.end - part.start == sources[part.key]
            span = {} if is_whole else {"CopySourceRange": f"bytes={part.start}-{part.end - 1}"}
            source = {"Bucket": self._bucket, "Key": part.key}
            answer = self._client.upload_part_copy(**upload, **span, PartNumber=number, CopySource=source)
            return {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}

        def write(number: int, part: ReadPart) -> dict[str, Any]:
            content = b"".join(map(self.read, part.keys))
            answer = self._client.upload_part(**upload, PartNumber=number, Body=content)
            return {"PartNumber": number, "ETag": answer["ETag"]}

        with ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
            parts = list(pool.map(copy, itertools.count(1), copied))
        with ThreadPoolExecutor(_WRITES_AT_ONCE) as pool:
            return [*parts, *pool.map(write, itertools.count(len(copied) + 1), read)]


def _raise_meaning(bucket: str, key: str, error: BaseException) -> NoReturn:
    """Raise what an error of S3 means for an input."""
    address = f"s3://{bucket}/{key}"
    if isinstance(error, ClientError) and code_of(error) in {"PreconditionFailed", "412"}:
        raise InputFaultError(
            f"{address} was changed after the job was submitted; submit it again"
        ) from error
    if meaning_of(error) is S3Meaning.LATER:
        raise AwsBusyError(f"{address}: {error}") from error
    raise InputFaultError(explanation(address, error)) from error


class _Pieces(io.RawIOBase):
    """An iterator of bytes as a file."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer with bytes of the next piece."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
