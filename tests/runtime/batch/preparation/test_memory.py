"""Checking an input takes the same memory however long it is: what grows with it goes to S3 on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference_runtime import runtime_directory
from tests.runtime.batch.preparation import check_here

pytestmark = pytest.mark.faults

FEW, MANY = 40_000, 120_000


def check(folder: Path, form: str, end: int) -> tuple[int, int, int, int]:
    """Check an input in a process of its own: lines, invalid, and peaks of it and of its child in MiB."""
    result = subprocess.run(
        [sys.executable, check_here.__file__, str(folder), form, str(end)],
        env={**os.environ, "PYTHONPATH": str(runtime_directory())},
        capture_output=True,
        text=True,
        check=True,
    )
    lines, invalid, own, child = json.loads(result.stdout)
    return lines, invalid, own, child


def write_parquet(path: Path, count: int) -> int:
    table = pa.table({"name": [f"number {each}" for each in range(count)], "at": range(count)})
    pq.write_table(table, path, row_group_size=count)
    return 1


def write_csv(path: Path, count: int) -> int:
    path.write_text("name\n" + "".join(f"number {each}\n" for each in range(count)), encoding="utf-8")
    return path.stat().st_size


def write_bad_lines(path: Path, count: int) -> int:
    path.write_text("x\n" * count, encoding="utf-8")
    return path.stat().st_size


@pytest.mark.parametrize(
    ("form", "write", "is_valid"),
    [("parquet", write_parquet, True), ("csv", write_csv, True), ("jsonl", write_bad_lines, False)],
)
def test_memory_does_not_grow_with_the_input(
    tmp_path: Path, form: str, write: Callable[[Path, int], int], *, is_valid: bool
) -> None:
    peaks = []
    for count in (FEW, MANY):
        end = write(tmp_path / f"in.{form}", count)
        lines, invalid, own, child = check(tmp_path, form, end)
        assert lines >= count
        assert invalid == (0 if is_valid else count)
        peaks.append((own, child))
    (few, few_child), (many, many_child) = peaks
    # 80,000 rows that were kept would take 86 MiB and more.
    assert many - few < 45, peaks
    assert many_child - few_child < 45, peaks


def test_a_large_row_group_is_streamed(tmp_path: Path) -> None:
    """A row group of 1 GiB takes less than half of that to read."""
    texts = pa.array(["shoe " * 8192] * 1000)
    schema = pa.schema({"name": pa.string()})
    with pq.ParquetWriter(tmp_path / "in.parquet", schema, use_dictionary=False) as writer:
        table = pa.table([pa.chunked_array([texts] * 27)], schema=schema)
        writer.write_table(table, row_group_size=table.num_rows)
    group = pq.read_metadata(tmp_path / "in.parquet").row_group(0)
    assert group.total_byte_size > 2**30
    lines, invalid, own, child = check(tmp_path, "parquet", 1)
    assert (lines, invalid) == (27_000, 0)
    assert own < 400
    assert child < 400
