"""What is no Parquet, or damaged, or more than may be, says why; nothing but its reader dies of it."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from batch.preparation import parquet, parquet_file
from batch.preparation.input_text import InputRow, UnreadableInputError
from batch.preparation.parquet import ParquetReader
from batch.preparation.parquet_file import ParquetFile

TABLE = pa.table(
    {
        "name": [f"number {each % 7}" for each in range(60)],
        "sizes": [[each, None] for each in range(60)],
        "of": [{"brand": "x" * each, "tags": {"a": each}} for each in range(60)],
        "at": pa.array(range(60), pa.timestamp("ms")),
    }
)


def written(table: pa.Table = TABLE, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


GOOD = written(row_group_size=25)
FOOTER = int.from_bytes(GOOD[-8:-4], "little")


@pytest.fixture
def reader() -> Iterator[ParquetReader]:
    with closing(ParquetReader()) as running:
        yield running


def rows(reader: ParquetReader, content: bytes) -> list[InputRow]:
    def read(start: int, end: int) -> bytes:
        return content[start:end]

    groups = reader.row_groups(read, len(content))
    found = list(reader.rows(read, len(content), (0, len(groups))))
    assert [row.line for row in found] == list(range(1, 1 + sum(count for count, _ in groups)))
    return found


def encrypted(content: pa.Table, **settings: Any) -> bytes:
    """Write a file whose columns, and footer if nothing else is said, are encrypted."""

    class Keys(encryption.KmsClient):  # type: ignore[misc] # pyarrow has no types
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:  # noqa: ARG002
            return key_bytes.hex().encode()

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:  # noqa: ARG002
            return bytes.fromhex(str(wrapped_key))

    factory = encryption.CryptoFactory(lambda _: Keys())
    configuration = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["name"]}, **settings
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), configuration)
    return written(content, encryption_properties=properties)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "has 0 bytes, too few for a Parquet file"),
        (b"PAR1PAR1", "has 8 bytes, too few for a Parquet file"),
        (b'{"name": "shoe"}\n', "does not begin and end with PAR1: it is not Parquet, or it was cut off"),
        (GOOD[:-1], "does not begin and end with PAR1"),
        (GOOD[: len(GOOD) // 2], "does not begin and end with PAR1"),
        (b"PAR1" + b"\x00" * 8 + b"PAR1", "its footer cannot be read: "),
        (GOOD[:-8] + b"\xff\xff\xff\x7fPAR1", "says that its footer has 2,147,483,647 bytes"),
        (GOOD[:-8] + b"\x00\x00\x00\x00PAR1", "its footer cannot be read: "),
        (GOOD[:4] + GOOD[500:], "cannot be read"),
        (
            written(compression="zstd"),
            "column name: is compressed with ZSTD; allowed are SNAPPY, GZIP",
        ),
        (encrypted(TABLE), "uses Parquet encryption; write it without"),
        pytest.param(
            encrypted(TABLE, plaintext_footer=True),
            "reader ended with signal SIGABRT: what():  Cannot decrypt",
            marks=pytest.mark.thorough,
        ),
        (written(pa.table({"a": [1]}).drop_columns("a")), "has no column"),
        (
            written(pa.table([[1], [2]], names=["a", "a"])),
            "column a: occurs 2 times; give each column a unique name",
        ),
        (written(pa.table({"a": [b"x"]})), "column a: is of type binary; allowed are booleans,"),
    ],
    # Not of what is encrypted, which is another each time.
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_cannot_be_read_says_why(reader: ParquetReader, content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableInputError) as raised:
        rows(reader, content)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


def test_all_columns_that_cannot_be_read_are_named_at_once(reader: ParquetReader) -> None:
    table = pa.table({f"c{each}": pa.array([b"x"]) for each in range(12)})
    with pytest.raises(UnreadableInputError, match=r"column c0: .*; column c9: [^;]*; .*; and 2 more$"):
        rows(reader, written(table))


@pytest.mark.thorough
def test_the_reader_goes_on_after_it_died(reader: ParquetReader) -> None:
    def read(start: int, end: int) -> bytes:
        assert reader._process is not None
        reader._process.kill()
        return GOOD[start:end]

    with pytest.raises(
        UnreadableInputError, match=r"it may be damaged: its reader ended with signal SIGKILL$"
    ):
        reader.row_groups(read, len(GOOD))
    assert len(rows(reader, GOOD)) == 60


def test_what_reading_raises_goes_through(reader: ParquetReader) -> None:
    def read(start: int, end: int) -> bytes:
        raise LookupError("gone")

    with closing(ParquetReader()) as other, pytest.raises(LookupError, match="gone"):
        other.row_groups(read, len(GOOD))


def test_a_row_group_that_is_too_large_says_how_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_file, "ROW_GROUP_ROWS", 20)
    with pytest.raises(UnreadableInputError) as raised:
        ParquetFile(lambda start, end: GOOD[start:end], len(GOOD))
    first, second = str(raised.value).split("; row group 2 has 25 rows")
    assert first.startswith("row group 1 has 25 rows of ")
    assert first.endswith(
        " bytes before compression; 20 rows of 4,294,967,296 bytes are allowed: write smaller row groups"
    )
    assert "row group 3" not in second


def test_a_page_that_is_too_large_says_how_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_file, "_MOST_PAGE_BYTES", 2**20)
    content = written(
        pa.table({"name": ["x" * 4 * 2**20]}), compression="none", use_dictionary=False, data_page_size=2**26
    )
    file = ParquetFile(lambda start, end: content[start:end], len(content))
    with pytest.raises(UnreadableInputError, match=r"has a page of [\d,]+ bytes; 1,048,576 are allowed"):
        list(file.batches(0))


@pytest.mark.thorough
def test_a_row_group_that_needs_more_memory_than_there_is_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "READER_BYTES", 512 * 2**20)
    text = "x" * 2**20
    content = written(pa.table({"name": pa.array([text] * 1024).dictionary_encode()}), compression="gzip")
    with (
        closing(ParquetReader()) as small,
        pytest.raises(
            UnreadableInputError,
            match=r"row group 1, of 1,024 rows and [\d,]+ bytes before compression, needs more memory than",
        ),
    ):
        rows(small, content)


def test_a_row_group_with_fewer_rows_than_promised_is_damaged(reader: ParquetReader) -> None:
    table = pa.table({"name": ["x"] * 130})
    # Both footers have the same rows and bytes; the values before them differ.
    long, short = (
        written(each, compression="none", write_statistics=False, use_dictionary=False)
        for each in (table, table.slice(0, 100))
    )
    footer = int.from_bytes(long[-8:-4], "little")
    body = short[: -8 - int.from_bytes(short[-8:-4], "little")]
    padded = body + b"\x00" * (len(long) - 8 - footer - len(body))
    with pytest.raises(
        UnreadableInputError, match=r"row group 1, of 130 rows .* (cannot be read|is damaged)"
    ):
        rows(reader, padded + long[-8 - footer :])


def outcome(reader: ParquetReader, content: bytes) -> str:
    try:
        rows(reader, content)
    except UnreadableInputError as error:
        return "traceback" if "Traceback" in str(error) else "reason"
    return "rows"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_file_is_read_or_says_why(reader: ParquetReader, seed: int) -> None:
    """Whatever is changed in a file, it gives rows or one reason, and never ends anything but its reader."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    seeds = [GOOD, written(compression="none"), written(compression="gzip", data_page_version="2.0")]
    outcomes = set()
    for _ in range(150):
        content = bytearray(chance.choice(seeds))
        footer = int.from_bytes(content[-8:-4], "little")
        for _ in range(chance.choice([1, 1, 2, 5])):
            begin = chance.choice([0, max(0, len(content) - 8 - footer)])
            place = chance.randrange(begin, len(content) - 4)
            change = chance.randrange(4)
            if change == 0:
                content[place] ^= 1 << chance.randrange(8)
            elif change == 1:
                content[place] = chance.choice([0, 127, 128, 255])
            elif change == 2:
                del content[place : place + chance.randrange(1, 9)]
            else:
                content[place:place] = chance.randbytes(chance.randrange(1, 9))
        outcomes.add(outcome(reader, bytes(content)))
    assert outcomes == {"rows", "reason"}
