"""The codec gives each field the type that its record declares, and refuses what is not such a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from inference_contracts.json_record import JsonRecord


@dataclass(frozen=True, slots=True)
class Inner(JsonRecord):
    size: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Outer(JsonRecord):
    many: tuple[Inner, ...]
    one: Inner | None = None
    words: tuple[str, ...] = ()
    usd: float | None = None
    free: Mapping[str, object] = field(default_factory=dict)


def test_a_record_is_read_as_it_was_written() -> None:
    record = Outer((Inner(1.5, "Ä"),), Inner(2.0), ("a", "b"), 0.5, {"list": [1], "none": None})
    assert Outer.from_json(record.to_json()) == record
    assert record.to_json().isascii()


def test_nothing_inside_an_optional_record_stays_nothing() -> None:
    assert Outer.from_json('{"many":[],"one":null,"usd":null}') == Outer(())


def test_a_whole_number_becomes_a_float_where_one_is_declared() -> None:
    """DynamoDB returns 5 for 5.0."""
    found = Outer.from_values({"many": [{"size": 5}], "usd": 1})
    assert (type(found.many[0].size), type(found.usd)) == (float, float)


@pytest.mark.parametrize("text", ['{"many":[],"unknown":1}', "{}", '{"many":[{}]}', "[]", "1"])
def test_what_is_not_such_a_record_is_refused(text: str) -> None:
    with pytest.raises(TypeError):
        Outer.from_json(text)
