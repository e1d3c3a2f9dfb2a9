"""Rows in Parquet become the shards and errors that the same rows in JSON would."""

from __future__ import annotations

import importlib.util
import io
import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batch.contracts.request import Input, JobRequest, RequestTemplate
from batch.preparation import segments
from inference_contracts.batch_configuration import Capacity, JobLimits
from tests.runtime.batch import resources
from tests.runtime.batch.preparation.preparing import Prepared, prepare

REQUEST = JobRequest(
    job="j1",
    team="search",
    queue="nightly",
    model="qwen",
    endpoint="/v1/chat/completions",
    inputs=(Input(resources.BUCKET, "in.parquet", "parquet"),),
    deadline=4e9,
    budget_usd=1000.0,
    capacity=Capacity(1e6, 1e6, 1.0, 4.0),
    template=RequestTemplate("{% if name %}{{ row | tojson }}{% endif %}", (), {"max_tokens": 7}),
)

pytestmark = pytest.mark.usefixtures("aws")


def written(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def prepared(table: pa.Table, request: JobRequest = REQUEST, **options: Any) -> Prepared:
    return prepare(request, written(table, **options))


def names(count: int) -> pa.Table:
    return pa.table({"custom_id": [f"id-{each}" for each in range(count)], "name": ["a shoe"] * count})


@pytest.mark.parametrize("compression", ["snappy", "gzip", "none"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False},
        {"data_page_version": "2.0", "version": "1.0"},
        {"use_dictionary": False, "column_encoding": {"name": "DELTA_BYTE_ARRAY"}},
        {"write_page_checksum": True, "data_page_size": 64},
    ],
)
def test_rows_of_many_row_groups_are_all_there_once(compression: str, options: dict[str, Any]) -> None:
    table = pa.table({"name": [f"number {each}" for each in range(1000)], "at": range(1000)})
    found = prepared(table, compression=compression, row_group_size=77, **options)
    assert found.planned["accepted"], found.problems
    assert found.planned["lines"] == 1000
    assert found.rows == [{"name": f"number {each}", "at": each} for each in range(1000)]
    assert len({line["custom_id"] for line in found.lines}) == 1000


def test_a_segment_is_a_run_of_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 700)
    found = prepared(names(100), row_group_size=10, use_dictionary=False)
    spans = [(each["start"], each["end"]) for each in found.segments]
    assert len(spans) > 2
    assert [begin for begin, _ in spans] == [0, *(end for _, end in spans[:-1])]
    assert spans[-1][1] == 10
    assert [line["custom_id"] for line in found.lines] == [f"id-{each}" for each in range(100)]


def test_a_row_is_the_same_as_in_json() -> None:
    values = [
        {"name": "shoe", "price": 12.5, "sizes": [41, 42], "of": {"brand": "x", "years": None}, "sold": True},
        {"name": "hat", "price": None, "sizes": [], "of": None, "sold": False},
    ]
    as_json = replace(REQUEST, inputs=(Input(resources.BUCKET, "in.jsonl"),))
    in_json = prepare(as_json, "\n".join(map(json.dumps, values)).encode())
    in_parquet = prepared(pa.Table.from_pylist(values))
    assert in_parquet.lines == in_json.lines
    assert in_parquet.planned == in_json.planned


def test_every_bad_row_is_named_by_its_number_in_the_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 300)
    count = 50
    ids: list[str | None] = [f"id-{each}" for each in range(count)]
    ids[9], ids[20], ids[31] = None, "", "id-3"
    prices = [1.0] * count
    prices[41] = float("nan")
    table = pa.table({"custom_id": ids, "name": ["x"] * count, "price": prices})
    found = prepared(table, row_group_size=7)
    assert len(found.segments) > 2
    assert [(line, message.partition(":")[0]) for line, message in found.bad] == [
        (10, "custom_id"),
        (21, "custom_id"),
        (42, "price"),
        (32, "its custom_id is that of line 4; each must have its own"),
    ]
    assert found.errors[2]["custom_id"] == "id-41"
    assert set(found.problems) == {"invalid_lines", "duplicate_custom_id"}
    assert len(found.lines) == count - 3


def test_a_text_that_is_none_is_one_bad_row() -> None:
    texts = pa.array([b"fine", b"\xff\xfe", b"also"]).view(pa.string())
    found = prepared(pa.table({"name": texts}), replace(REQUEST, skip_invalid=True))
    assert found.bad == [(2, "name: is not UTF-8 text: invalid start byte at byte 0")]
    assert [row["name"] for row in found.rows] == ["fine", "also"]


def test_a_row_that_is_too_large_is_one_bad_row() -> None:
    table = pa.table({"name": ["x"], "custom_id": ["a"], "unused": ["y" * 3000]})
    found = prepared(table, replace(REQUEST, limits=JobLimits(line_bytes=2000)))
    [(line, message)] = found.bad
    assert line == 1
    assert message.endswith(" bytes as JSON; a row may have at most 2,000")


def test_a_file_without_rows_is_an_empty_input() -> None:
    for table in (names(0), pa.table({"name": pa.array([], pa.string())})):
        found = prepared(table)
        assert found.segments == []
        assert set(found.problems) == {"empty_file"}


def test_without_a_template_there_is_no_request() -> None:
    found = prepared(names(3), replace(REQUEST, template=None))
    assert found.bad == [(1, "template: the job has none")]
    assert not found.planned["accepted"]


def test_where_pyarrow_is_missing_the_job_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    found = prepared(names(3))
    assert "is not supported in this region" in found.problems["unreadable_input"]


def test_preparing_again_writes_the_same() -> None:
    def everything() -> dict[str, bytes]:
        return {key: resources.read_object(key) for key in resources.list_keys("jobs/")}

    prepared(names(50), row_group_size=10)
    once = everything()
    prepared(names(50), row_group_size=10)
    assert everything() == once
