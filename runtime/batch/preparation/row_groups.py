"""Reads rows of Parquet one by one from a run of row groups, with some MiB in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from batch.preparation.arrow_values import UnreadableValue, read_values
from batch.preparation.input_text import UnreadableInputError
from batch.preparation.parquet_file import FAULTS, ParquetFile, words

#: A row; or, for an invalid row, its ``custom_id`` (if it has one) and its problems.
FoundRow = tuple[dict[str, Any] | None, str | None, Sequence[str]]


def batches(file: ParquetFile, row_groups: Sequence[int]) -> Iterator[list[FoundRow]]:
    """Iterate over the rows of row groups, in batches.

    Parameters
    ----------
    row_groups
        Indexes in the file, from 0.

    Raises
    ------
    UnreadableInputError
        If the remaining rows cannot be read.
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
