"""What is taken for JSON is what workers read as the same, and nothing of it ends the one who reads."""

from __future__ import annotations

import json
import math
import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch.contracts.shard import ShardLine
from batch.preparation.json_values import read_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**66), 2**66)
    | st.floats()
    | st.text(st.characters(exclude_categories=[]) | st.sampled_from("\ud800\udfff😀\x00"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.booleans(), st.integers(0, 140))
def test_what_is_read_is_read_by_workers_as_the_same(value: object, is_ascii: bool, levels: int) -> None:  # noqa: FBT001
    for _ in range(levels):
        value = [value]
    content = json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    try:
        found = read_json(content)
    except ValueError:
        return
    assert found == value
    line = ShardLine(0, 1, "a", 1, body={"value": found}).to_json().encode()
    row = orjson.loads(line)["body"]
    assert row["value"] == found
    orjson.dumps(row)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"123456789012345678901234567890", "123456789012345678901234567890 does not fit into 64 bits"),
        (b"9" * 5000, "9999999999999999999999999999999999999999... does not fit into 64 bits"),
        (b"-9223372036854775809", "does not fit into 64 bits; write it as a string"),
        (b"1e999", "1e999 is too large for a number"),
        (b'"\\ud800"', "half of a surrogate pair is not a character"),
        (b'{"\\udfff": 1}', "half of a surrogate pair is not a character"),
        (b'"\xed\xa0\x80"', "'utf-8' codec can't decode"),
        ('{"a": 1}'.encode("utf-16"), "'utf-8' codec can't decode"),
        ('{"a": 1}'.encode("utf-32-le"), "Expecting property name"),
        (b"[" * 129 + b"]" * 129, "nested more than 128 deep"),
        (b'{"a":' * 900 + b"1" + b"}" * 900, "nested more than 128 deep"),
        (b"[" * 100_000, "nested more than 128 deep"),
        (b'{"a": 1}\x00', "Extra data"),
        (b"\x00", "Expecting value"),
        (b"-Infinity", "-Infinity is not a JSON value"),
    ],
    ids=lambda each: repr(each[:20]),
)
def test_what_workers_would_not_read_says_why(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        read_json(content)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'{"a": 1}\r', {"a": 1}),
        (b"18446744073709551615", 2**64 - 1),
        (b'"\\ud83d\\ude00"', "😀"),
        (b'"' + b"[{" * 500 + b'"', "[{" * 500),
        (b"[" * 128 + b"]" * 128, json.loads("[" * 128 + "]" * 128)),
        (b"1e-999", 0.0),
    ],
    ids=lambda each: repr(each)[:20],
)
def test_what_is_unusual_and_right_is_read(content: bytes, value: object) -> None:
    found = read_json(content)
    assert found == value
    assert not isinstance(found, float) or math.isfinite(found)
