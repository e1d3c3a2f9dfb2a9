"""Reads a Parquet file by byte ranges, and its rows one by one, with some MiB in memory.

The footer is checked before any row is read. The format is that of
https://parquet.apache.org/docs/file-format/. Functions have pyarrow from the layer "AWS SDK for pandas",
which is built with only the codecs listed here
(https://github.com/aws/aws-sdk-pandas/blob/main/building/lambda/build-lambda-layer.sh). Other codecs are
refused here too.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from batch.preparation.arrow_values import (
    Reader,
    UnreadableValue,
    UnsupportedTypeError,
    read_values,
    reader_of,
)
from batch.preparation.input_text import UnreadableInputError

#: Exceptions of pyarrow for a damaged file, after `MemoryError`.
FAULTS: Final = (pa.ArrowException, OSError, OverflowError, RecursionError, UnicodeError, ValueError)
#: Largest row group, before compression. A function reads it in well under its fifteen minutes.
ROW_GROUP_BYTES: Final = 4 * 2**30
ROW_GROUP_ROWS: Final = 2_000_000
_CODECS: Final = ("SNAPPY", "GZIP", "UNCOMPRESSED")
_MAGIC: Final = b"PAR1"
_ENCRYPTED: Final = b"PARE"
_TAIL_BYTES: Final = 8
_MAX_FOOTER_BYTES: Final = 16 * 2**20
# Most leaf columns. Each has a buffer of its own.
_BUFFER_BYTES: Final = 32 * 2**20
_MIN_BUFFER_BYTES: Final = 2**16
_MAX_BUFFER_BYTES: Final = 4 * 2**20
# A page must be whole in memory, and so must a column of one page.
_MOST_PAGE_BYTES: Final = 512 * 2**20
_BATCH_BYTES: Final = 4 * 2**20
_MAX_BATCH_ROWS: Final = 1024
_SHOWN: Final = 10
_LONGEST_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group."""

    rows: int
    size: int
    """Bytes before compression."""


class ParquetFile:
    """A file with readable rows.

    read: Returns a byte range of the file; the end is excluded.
    Raises UnreadableInputError if the file is not Parquet, or contains unsupported types. The error names all
        problems.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        def read_page(start: int, end: int) -> bytes:
            if end - start > _MOST_PAGE_BYTES:
                raise UnreadableInputError(
                    f"has a page of {end - start:,} bytes; {_MOST_PAGE_BYTES:,} are allowed: write it with "
                    "smaller data pages"
                )
            return read(start, end)

        _check_frame(read, size)
        try:
            self._file = _open(RangedFile(read_page, size))
            self.row_groups = _row_groups(self._file.metadata)
            problems = [*_problems(self._file.metadata, self.row_groups), *self._read_schema()]
        except MemoryError as error:
            raise UnreadableInputError("its footer needs more memory than a reader has") from error
        except FAULTS as error:
            raise UnreadableInputError(f"its footer cannot be read: {words(error)}") from error
        if problems:
            more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
            raise UnreadableInputError("; ".join([*problems[:_SHOWN], *more]))

    def batches(self, row_group: int) -> Iterator[Any]:
        """Iterate over the rows of a row group, as Arrow batches of some MiB each.

        row_group: Index in the file, from 0.
        """
        group = self.row_groups[row_group]
        rows = min(max(_BATCH_BYTES * group.rows // max(1, group.size), 1), _MAX_BATCH_ROWS)
        return cast(Iterator[Any], self._file.iter_batches(rows, row_groups=[row_group], use_threads=False))

    def _read_schema(self) -> Iterator[str]:
        """Choose the reader of each column, and iterate over the problems of columns."""
        schema = self._file.schema_arrow
        if not schema.names:
            yield "has no column"
        self.readers: dict[str, Reader] = {}
        for name, count in Counter(schema.names).items():
            if count > 1:
                yield f"column {name}: occurs {count} times; give each column a unique name"
                continue
            try:
                self.readers[name] = reader_of(schema.field(name).type, name)
            except UnsupportedTypeError as error:
                yield str(error)


def words(error: BaseException) -> str:
    """Return the text of an exception as one line."""
    return " ".join(str(error).split())[:_LONGEST_WORDS] or type(error).__name__


def _check_frame(read: Callable[[int, int], bytes], size: int) -> None:
    """Check the first and last bytes of the file, before the footer is read."""
    if size < len(_MAGIC) + _TAIL_BYTES:
        raise UnreadableInputError(f"has {size} bytes, too few for a Parquet file")
    head, tail = read(0, len(_MAGIC)), read(size - _TAIL_BYTES, size)
    if _ENCRYPTED in (head, tail[-len(_MAGIC) :]):
        raise UnreadableInputError("uses Parquet encryption; write it without, S3 encrypts all objects")
    if (head, tail[-len(_MAGIC) :]) != (_MAGIC, _MAGIC):
        raise UnreadableInputError("does not begin and end with PAR1: it is not Parquet, or it was cut off")
    footer = int.from_bytes(tail[: -len(_MAGIC)], "little")
    if footer > min(size - len(_MAGIC) - _TAIL_BYTES, _MAX_FOOTER_BYTES):
        raise UnreadableInputError(
            f"says that its footer has {footer:,} bytes; the file has {size:,}, and a footer "
            f"{_MAX_FOOTER_BYTES:,} at most: write it with fewer row groups"
        )


def _open(file: RangedFile) -> Any:
    metadata = pq.read_metadata(file)
    share = _BUFFER_BYTES // max(1, metadata.num_columns)
    return pq.ParquetFile(
        file,
        metadata=metadata,
        buffer_size=min(max(share, _MIN_BUFFER_BYTES), _MAX_BUFFER_BYTES),
        # In nanoseconds, old (INT96) timestamps end in 2262. Later ones would silently become another time.
        coerce_int96_timestamp_unit="us",
        page_checksum_verification=True,
        arrow_extensions_enabled=False,
    )


def _row_groups(metadata: Any) -> list[RowGroup]:
    """Return the row groups listed in the footer."""
    groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
    return [RowGroup(each.num_rows, each.total_byte_size) for each in groups]


def _problems(metadata: Any, groups: Sequence[RowGroup]) -> Iterator[str]:
    """Iterate over the problems of the file other than those of its schema."""
    rows = sum(group.rows for group in groups)
    if rows != metadata.num_rows or any(min(group.rows, group.size) < 0 for group in groups):
        yield f"its footer contradicts itself: {metadata.num_rows:,} rows, {rows:,} in all row groups"
    for place, group in enumerate(groups, start=1):
        if group.size > ROW_GROUP_BYTES or group.rows > ROW_GROUP_ROWS:
            yield (
                f"row group {place} has {group.rows:,} rows of {group.size:,} bytes before compression; "
                f"{ROW_GROUP_ROWS:,} rows of {ROW_GROUP_BYTES:,} bytes are allowed: write smaller row groups"
            )
    for column, codec in _codecs(metadata):
        if codec not in _CODECS:
            allowed = ", ".join(_CODECS)
            yield f"column {column}: is compressed with {codec}; allowed are {allowed}"


def _codecs(metadata: Any) -> dict[tuple[str, str], None]:
    """Return the codecs of each column. The chunks of one column may differ."""
    found: dict[tuple[str, str], None] = {}
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        for number in range(metadata.num_columns):
            column = group.column(number)
            found[column.path_in_schema, column.compression] = None
    return found


class RangedFile(io.RawIOBase):
    """A seekable, read-only file.

    read: Returns a byte range; the end is excluded.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Set the position of the next read. Raises ValueError if the position is before the first byte."""
        place = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence] + offset
        if place < 0:
            raise ValueError(f"got byte {place}; a file begins at 0")
        self._place = place
        return place

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer, up to the end of the file."""
        end = min(self._place + len(buffer), self._size)
        if end <= self._place:
            return 0
        content = self._read(self._place, end)
        buffer[: len(content)] = content
        self._place += len(content)
        return len(content)


#: A row; or, for an invalid row, its ``custom_id`` (if it has one) and its problems.
FoundRow = tuple[dict[str, Any] | None, str | None, Sequence[str]]


def batches(file: ParquetFile, row_groups: Sequence[int]) -> Iterator[list[FoundRow]]:
    """Iterate over the rows of row groups, in batches.

    row_groups: Indexes in the file, from 0.
    Raises UnreadableInputError if the remaining rows cannot be read.
    """
    line = 0
    for place in row_groups:
        group = file.row_groups[place]
        what = f"row group {place + 1}, of {group.rows:,} rows and {group.size:,} bytes before compression,"
        end = line + group.rows
        try:
            for batch in file.batches(place):
                found = list(_rows(file, batch))
                line += len(found)
                yield found
        except MemoryError as error:
            reason = f"{what} needs more memory than a reader has: write smaller row groups or data pages"
            raise UnreadableInputError(reason, line=line + 1) from error
        except FAULTS as error:
            raise UnreadableInputError(f"{what} cannot be read: {words(error)}", line=line + 1) from error
        if line != end:
            reason = f"{what} actually has {group.rows + line - end:,} rows; the file is damaged"
            raise UnreadableInputError(reason, line=line + 1)


def _rows(file: ParquetFile, batch: Any) -> Iterator[FoundRow]:
    columns = [read_values(reader, batch.column(name)) for name, reader in file.readers.items()]
    for values in zip(*columns, strict=True):
        row = dict(zip(file.readers, values, strict=True))
        reasons = [
            f"{name}: {each.reason}" for name, each in row.items() if isinstance(each, UnreadableValue)
        ]
        custom_id = row.get("custom_id")
        if reasons:
            yield None, custom_id if isinstance(custom_id, str) else None, reasons
        else:
            yield row, None, ()
