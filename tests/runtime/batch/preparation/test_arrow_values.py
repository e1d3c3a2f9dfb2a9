"""Columns of every type become the values that a row in JSON would have."""

from __future__ import annotations

import datetime
import io
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from batch.preparation.arrow_values import UnreadableValue, UnsupportedTypeError, read_values, reader_of
from batch.preparation.parquet_file import ParquetFile, batches

INSTANTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59))
#: By type of Arrow: values, and what each is in JSON, by rules of their own.
LEAVES: list[tuple[Any, st.SearchStrategy[Any], Any]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1), lambda value: value),
    (pa.uint64(), st.integers(0, 2**64 - 1), lambda value: value),
    (pa.int8(), st.integers(-128, 127), lambda value: value),
    (pa.bool_(), st.booleans(), lambda value: value),
    (pa.float64(), st.floats(allow_nan=False, allow_infinity=False), lambda value: value),
    (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=9), lambda value: value),
    (pa.large_string(), st.sampled_from(["", "ä\x00\n", "😀"]), lambda value: value),
    (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b", ""]), lambda value: value),
    (pa.date32(), st.dates(), lambda value: value.isoformat()),
    (pa.time64("us"), st.times(), lambda value: value.isoformat()),
    (pa.timestamp("us"), INSTANTS, lambda value: value.isoformat()),
    (pa.timestamp("us", "Asia/Tokyo"), INSTANTS, lambda value: value.isoformat() + "Z"),
    (
        pa.decimal128(20, 4),
        st.decimals(-(10**15), 10**15, places=4, allow_nan=False),
        lambda value: str(value.quantize(Decimal("0.0001"))) if value else "0.0000",
    ),
]


@st.composite
def columns(draw: st.DrawFn, *, depth: int = 2) -> tuple[Any, st.SearchStrategy[tuple[Any, Any]]]:
    """Draw a type, and values of it beside what they are in JSON."""
    kind = draw(st.sampled_from(["leaf", "leaf", "list", "struct", "map"] if depth else ["leaf"]))
    if kind == "leaf":
        arrow, values, in_json = draw(st.sampled_from(LEAVES))
        pairs = values.map(lambda value: (value, in_json(value)))
    else:
        arrow, inner = draw(columns(depth=depth - 1))
        if kind == "list":
            arrow = pa.list_(arrow)
            pairs = st.lists(inner, max_size=3).map(
                lambda each: ([value for value, _ in each], [value for _, value in each])
            )
        elif kind == "struct":
            arrow = pa.struct([("of", arrow), ("n", pa.int16())])
            pairs = inner.map(lambda pair: ({"of": pair[0], "n": 3}, {"of": pair[1], "n": 3}))
        else:
            arrow = pa.map_(pa.string(), arrow)
            pairs = st.dictionaries(st.sampled_from(["a", "b", ""]), inner, max_size=3).map(
                lambda each: (
                    [(key, value) for key, (value, _) in each.items()],
                    {key: value for key, (_, value) in each.items()},
                )
            )
    return arrow, st.one_of(st.just((None, None)), pairs)


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Draw a table, and its rows in JSON."""
    count = draw(st.integers(1, 12))
    arrays: dict[str, pa.Array] = {}
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    for name in draw(
        st.lists(st.sampled_from(["a", "two words", "ä", "custom_id"]), min_size=1, unique=True)
    ):
        arrow, pairs = draw(columns())
        drawn = draw(st.lists(pairs, min_size=count, max_size=count))
        arrays[name] = pa.array([value for value, _ in drawn], arrow)
        for row, (_, value) in zip(rows, drawn, strict=True):
            row[name] = value
    return pa.table(arrays), rows


@given(
    tables(),
    st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["snappy", "gzip", "none"]),
            "row_group_size": st.integers(1, 5),
            "use_dictionary": st.booleans(),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
        }
    ),
)
@settings(deadline=None)
def test_generated_tables_are_read_as_they_were_drawn(
    drawn: tuple[pa.Table, list[dict[str, Any]]], options: dict[str, Any]
) -> None:
    table, rows = drawn
    file = io.BytesIO()
    try:
        pq.write_table(table, file, **options)
    except pa.ArrowIndexError:
        # pyarrow cannot write a dictionary of no values that stands in a struct.
        reject()
    content = file.getvalue()
    read = ParquetFile(lambda start, end: content[start:end], len(content))
    found = [row for batch in batches(read, range(len(read.row_groups))) for row, _, _ in batch]
    assert found == rows
    json.dumps(found, allow_nan=False)


def values(array: Any) -> list[Any]:
    return read_values(reader_of(array.type, "a"), array)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([0.1, 1e10, None], pa.float32()), [0.1, 1e10, None]),
        (pa.array([0.5, 65504.0], pa.float16()), [0.5, 65504.0]),
        (pa.array([-1, 1500], pa.timestamp("ms")), ["1969-12-31T23:59:59.999", "1970-01-01T00:00:01.500"]),
        (
            pa.array([1, 10**9], pa.timestamp("ns", "+02:00")),
            ["1970-01-01T00:00:00.000000001Z", "1970-01-01T00:00:01Z"],
        ),
        (pa.array([59, 86399], pa.time32("s")), ["00:00:59", "23:59:59"]),
        (pa.array([datetime.date(1, 1, 1)], pa.date64()), ["0001-01-01"]),
        (pa.array([Decimal("1E+3"), Decimal("-0.5")], pa.decimal256(50, 2)), ["1000.00", "-0.50"]),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
        (pa.array([None, None]), [None, None]),
        (pa.array(["x"], pa.string_view()), ["x"]),
    ],
    ids=lambda each: str(getattr(each, "type", "")),
)
def test_values_of_other_types(array: Any, expected: list[Any]) -> None:
    assert values(array) == expected
    twice = pa.concat_arrays([array, array])
    assert values(twice.slice(1, len(array))) == [*expected[1:], expected[0]]


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (pa.array([1.0, math.nan]), "nan is not a JSON value; write null in its place"),
        (pa.array([[1.0], [-math.inf]]), "-inf is not a JSON value"),
        (pa.array([{"a": 1.0}, {"a": math.inf}]), "inf is not a JSON value"),
        (pa.array([0, 2**62], pa.timestamp("s")), "lies outside of the years 1 to 9999"),
        (pa.array([0, 2**31 - 1], pa.date32()), "lies outside of the years 1 to 9999"),
        (pa.array([0, 86400], pa.int32()).view(pa.time32("s")), "is not a time of day"),
        (pa.array([[("a", 1)], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int8())), "has a key twice"),
        (pa.array([b"a", b"\xff"]).view(pa.string()), "is not UTF-8 text: invalid start byte at byte 0"),
    ],
)
def test_a_value_that_json_lacks_is_a_fault_and_no_other(array: Any, reason: str) -> None:
    good, bad = values(array)
    assert not isinstance(good, UnreadableValue)
    assert isinstance(bad, UnreadableValue)
    assert reason in bad.reason


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (pa.binary(), "a"),
        (pa.binary(16), "a"),
        (pa.struct([("b", pa.list_(pa.large_binary()))]), "a.b"),
        (pa.map_(pa.int8(), pa.int8()), "a"),
        (pa.duration("s"), "a"),
        (pa.month_day_nano_interval(), "a"),
        (pa.run_end_encoded(pa.int32(), pa.int8()), "a"),
    ],
    ids=str,
)
def test_a_type_that_json_lacks_is_refused_by_its_name(kind: Any, where: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=rf"^column {where}: is of type .*; allowed are booleans,"):
        reader_of(kind, "a")


def test_a_field_that_is_there_twice_and_what_is_nested_too_deep_are_refused() -> None:
    with pytest.raises(UnsupportedTypeError, match="has two fields with the same name"):
        reader_of(pa.struct([("b", pa.int8()), ("b", pa.int8())]), "a")
    kind = pa.int8()
    for _ in range(40):
        kind = pa.list_(kind)
    with pytest.raises(UnsupportedTypeError, match="nested more than 32 deep"):
        reader_of(kind, "a")


def test_timestamps_of_the_old_kind_keep_their_year() -> None:
    """In nanoseconds, as they are stored, the year 9999 would become another."""
    file = io.BytesIO()
    moments = [datetime.datetime(9999, 12, 31), datetime.datetime(1, 1, 1, 0, 0, 1)]
    pq.write_table(
        pa.table({"at": pa.array(moments, pa.timestamp("us"))}), file, use_deprecated_int96_timestamps=True
    )
    content = file.getvalue()
    read = ParquetFile(lambda start, end: content[start:end], len(content))
    [batch] = batches(read, [0])
    assert [row for row, _, _ in batch] == [{"at": "9999-12-31T00:00:00"}, {"at": "0001-01-01T00:00:01"}]
