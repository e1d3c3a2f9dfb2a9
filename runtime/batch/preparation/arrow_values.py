"""Converts Arrow values to JSON values, so that a row in Parquet equals the same row in JSON.

Types are those of https://arrow.apache.org/docs/python/api/datatypes.html. The code needs no time zone
database: timestamps are written in UTC.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from inference_contracts.units import SECONDS_PER_DAY

#: Converts an array to JSON values.
Reader = Callable[[Any], list[Any]]

_MAX_LEVELS: Final = 32
_EPOCH: Final = datetime(1970, 1, 1)
#: Units per second, and their number of digits.
_UNITS: Final = {"s": (1, 0), "ms": (10**3, 3), "us": (10**6, 6), "ns": (10**9, 9)}
_PLAIN: Final = (
    types.is_null,
    types.is_boolean,
    types.is_integer,
    types.is_string,
    types.is_large_string,
    types.is_string_view,
)
_ALLOWED: Final = (
    "booleans, whole numbers, floating-point numbers, decimals, strings, dates, times, timestamps, and lists,"
    " structs and maps with string keys of these"
)


class UnsupportedTypeError(Exception):
    """A column's type has no counterpart in JSON. The message names the column and the allowed types."""


class UnfitValueError(ValueError):
    """A value has no counterpart in JSON."""


@dataclass(frozen=True, slots=True)
class UnreadableValue:
    """Placeholder for a value that cannot be read."""

    reason: str
    """Problem of the value."""


def read_values(reader: Reader, array: Any) -> list[Any]:
    """Return the values of a column, with an `UnreadableValue` for each that cannot be read.

    reader: Result of `reader_of` for the column's type.
    """
    try:
        return reader(array)
    except ValueError:
        return [_value(reader, array.slice(place, 1)) for place in range(len(array))]


def _value(reader: Reader, array: Any) -> Any:
    try:
        return reader(array)[0]
    except UnicodeDecodeError as error:
        return UnreadableValue(f"is not UTF-8 text: {error.reason} at byte {error.start}")
    except ValueError as error:
        return UnreadableValue(str(error))


def reader_of(kind: Any, name: str, *, levels: int = _MAX_LEVELS) -> Reader:
    """Return the function that converts arrays of a type.

    name: Name of the column, for the message.
    levels: Levels of nesting that are still allowed.
    Raises UnsupportedTypeError if JSON has no counterpart for the type.
    """
    if not levels:
        raise UnsupportedTypeError(f"column {name}: is nested more than {_MAX_LEVELS} deep")
    if types.is_nested(kind):
        return _nested_reader(kind, name, levels - 1)
    if types.is_dictionary(kind):
        values = reader_of(kind.value_type, name, levels=levels - 1)
        return lambda array: values(array.dictionary_decode())
    if any(each(kind) for each in _PLAIN):
        return _plain
    for fits, read in (
        (types.is_float64, _finite),
        (types.is_floating, _short),
        (types.is_decimal, _decimals),
        (types.is_date32, partial(_dates, seconds=Fraction(SECONDS_PER_DAY), integers=pa.int32())),
        (types.is_date64, partial(_dates, seconds=Fraction(1, 1000), integers=pa.int64())),
    ):
        if fits(kind):
            return read
    if types.is_timestamp(kind):
        return partial(_timestamps, unit=kind.unit, ending="" if kind.tz is None else "Z")
    if types.is_time(kind):
        return partial(_times, unit=kind.unit, integers=pa.int32() if types.is_time32(kind) else pa.int64())
    raise UnsupportedTypeError(f"column {name}: is of type {str(kind)[:100]}; allowed are {_ALLOWED}")


def _nested_reader(kind: Any, name: str, levels: int) -> Reader:
    """Return the function that converts arrays of lists, structs or maps."""
    if types.is_fixed_size_list(kind):
        inner = reader_of(pa.list_(kind.value_type), name, levels=levels)
        return lambda array: inner(array.cast(pa.list_(kind.value_type)))
    if types.is_list(kind) or types.is_large_list(kind):
        return partial(_lists, values=reader_of(kind.value_type, name, levels=levels))
    if types.is_struct(kind):
        names = [field.name for field in kind]
        if len(set(names)) < len(names):
            raise UnsupportedTypeError(
                f"column {name}: has two fields with the same name; give each a unique name"
            )
        return partial(
            _structs,
            names=names,
            readers=[reader_of(field.type, f"{name}.{field.name}", levels=levels) for field in kind],
        )
    if types.is_map(kind) and (types.is_string(kind.key_type) or types.is_large_string(kind.key_type)):
        return partial(_maps, values=reader_of(kind.item_type, name, levels=levels))
    raise UnsupportedTypeError(f"column {name}: is of type {str(kind)[:100]}; allowed are {_ALLOWED}")


def _plain(array: Any) -> list[Any]:
    """Return values that JSON has unchanged."""
    return list(array.to_pylist())


def _finite(array: Any) -> list[Any]:
    """Return numbers. JSON has only finite ones."""
    values = _plain(array)
    for each in values:
        if each is not None and not math.isfinite(each):
            raise UnfitValueError(f"{each} is not a JSON value; write null in its place")
    return values


def _short(array: Any) -> list[Any]:
    """Return numbers of less than 64 bits with their shortest digits, so that 0.1 stays 0.1."""
    _finite(array)
    texts = array.cast(pa.float32()).cast(pa.string()).to_pylist()
    return [None if each is None else float(each) for each in texts]


def _decimals(array: Any) -> list[Any]:
    """Return decimals as strings. As numbers they would lose digits."""
    return [None if each is None else format(each, "f") for each in array.to_pylist()]


def _dates(array: Any, *, seconds: Fraction, integers: Any) -> list[Any]:
    """Return dates in ISO 8601."""
    return [
        None if each is None else _moment(math.floor(each * seconds)).date().isoformat()
        for each in array.view(integers).to_pylist()
    ]


def _timestamps(array: Any, *, unit: str, ending: str) -> list[Any]:
    """Return timestamps in ISO 8601: in UTC, or without a zone."""
    parts, digits = _UNITS[unit]

    def text(value: int) -> str:
        whole, rest = divmod(value, parts)
        return f"{_moment(whole).isoformat()}{_fraction(rest, digits)}{ending}"

    return [None if each is None else text(each) for each in array.view(pa.int64()).to_pylist()]


def _times(array: Any, *, unit: str, integers: Any) -> list[Any]:
    """Return times of day in ISO 8601."""
    parts, digits = _UNITS[unit]

    def text(value: int) -> str:
        whole, rest = divmod(value, parts)
        if not 0 <= whole < SECONDS_PER_DAY:
            raise UnfitValueError("is not a time of day")
        return f"{_moment(whole).time().isoformat()}{_fraction(rest, digits)}"

    return [None if each is None else text(each) for each in array.view(integers).to_pylist()]


def _moment(seconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError as error:
        raise UnfitValueError("lies outside of the years 1 to 9999") from error


def _fraction(rest: int, digits: int) -> str:
    """Return a fraction of a second as digits; empty if it is zero."""
    return f".{rest:0{digits}d}" if rest else ""


def _lists(array: Any, *, values: Reader) -> list[Any]:
    return [None if part is None else part[0] for part in _parts(array, [(array.values, values)])]


def _structs(array: Any, *, names: Sequence[str], readers: Sequence[Reader]) -> list[Any]:
    columns = [reader(field) for reader, field in zip(readers, array.flatten(), strict=True)]
    rows = zip(*columns, strict=True) if columns else ((),) * len(array)
    return [
        dict(zip(names, row, strict=True)) if valid else None
        for valid, row in zip(array.is_valid().to_pylist(), rows, strict=True)
    ]


def _maps(array: Any, *, values: Reader) -> list[Any]:
    return [
        None if part is None else _object(*part)
        for part in _parts(array, [(array.keys, _plain), (array.items, values)])
    ]


def _object(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    found = dict(zip(keys, values, strict=True))
    if len(found) < len(keys):
        raise UnfitValueError("a map has a key twice")
    return found


def _parts(array: Any, children: Sequence[tuple[Any, Reader]]) -> Iterator[Sequence[list[Any]] | None]:
    """Iterate over the children at each position of an array of lists; None for a null."""
    offsets = array.offsets.to_pylist()
    first, last = offsets[0], offsets[-1]
    columns = [read(child.slice(first, last - first)) for child, read in children]
    for valid, (begin, end) in zip(array.is_valid().to_pylist(), itertools.pairwise(offsets), strict=True):
        yield [column[begin - first : end - first] for column in columns] if valid else None
