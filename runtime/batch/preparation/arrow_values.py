"""Values of Arrow's arrays as values of JSON, for a row in Parquet is to be what a row in JSON is.

Types are those of https://arrow.apache.org/docs/python/api/datatypes.html. Needs nothing of a zone's clock:
a point in time is written in UTC.
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

#: Makes values of JSON of an array.
Reader = Callable[[Any], list[Any]]

_MOST_LEVELS: Final = 32
_EPOCH: Final = datetime(1970, 1, 1)
_DAY_SECONDS: Final = 86_400
#: Parts of a second, and digits of one.
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
    """A column of a type that JSON has nothing for: says which, and what is allowed."""


class UnfitValueError(ValueError):
    """A value that JSON has nothing for."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What stands in the place of a value that cannot be read.

    Parameters
    ----------
    reason
        What is wrong with it.
    """

    reason: str


def read_values(reader: Reader, array: Any) -> list[Any]:
    """Return the values of a column, with a `Fault` for each that cannot be read.

    Parameters
    ----------
    reader
        What `reader_of` returned for its type.
    array
        The column.
    """
    try:
        return reader(array)
    except ValueError:
        return [_value(reader, array.slice(place, 1)) for place in range(len(array))]


def _value(reader: Reader, array: Any) -> Any:
    """Return the only value of an array."""
    try:
        return reader(array)[0]
    except UnicodeDecodeError as error:
        return Fault(f"no text in UTF-8: {error.reason} at byte {error.start}")
    except ValueError as error:
        return Fault(str(error))


def reader_of(kind: Any, name: str, *, levels: int = _MOST_LEVELS) -> Reader:
    """Return what reads arrays of a type.

    Parameters
    ----------
    kind
        The type.
    name
        The column, for the message.
    levels
        How deep its values may be nested.

    Raises
    ------
    UnsupportedTypeError
        If JSON has nothing for it.
    """
    if not levels:
        raise UnsupportedTypeError(f"column {name}: is nested more than {_MOST_LEVELS} deep")
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
        (types.is_date32, partial(_dates, seconds=Fraction(_DAY_SECONDS), integers=pa.int32())),
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
    """Return what reads arrays of lists, structs or maps."""
    if types.is_fixed_size_list(kind):
        inner = reader_of(pa.list_(kind.value_type), name, levels=levels)
        return lambda array: inner(array.cast(pa.list_(kind.value_type)))
    if types.is_list(kind) or types.is_large_list(kind):
        return partial(_lists, values=reader_of(kind.value_type, name, levels=levels))
    if types.is_struct(kind):
        names = [field.name for field in kind]
        if len(set(names)) < len(names):
            raise UnsupportedTypeError(f"column {name}: has a field twice; each needs a name of its own")
        return partial(
            _structs,
            names=names,
            readers=[reader_of(field.type, f"{name}.{field.name}", levels=levels) for field in kind],
        )
    if types.is_map(kind) and (types.is_string(kind.key_type) or types.is_large_string(kind.key_type)):
        return partial(_maps, values=reader_of(kind.item_type, name, levels=levels))
    raise UnsupportedTypeError(f"column {name}: is of type {str(kind)[:100]}; allowed are {_ALLOWED}")


def _plain(array: Any) -> list[Any]:
    """Return values that are the same in JSON."""
    return list(array.to_pylist())


def _finite(array: Any) -> list[Any]:
    """Return numbers; JSON has no others than finite ones."""
    values = _plain(array)
    for each in values:
        if each is not None and not math.isfinite(each):
            raise UnfitValueError(f"{each} is no value of JSON; write null in its place")
    return values


def _short(array: Any) -> list[Any]:
    """Return numbers of less than 64 bits by their shortest digits: 0.1 is to be 0.1."""
    _finite(array)
    texts = array.cast(pa.float32()).cast(pa.string()).to_pylist()
    return [None if each is None else float(each) for each in texts]


def _decimals(array: Any) -> list[Any]:
    """Return decimals as strings, for as numbers they would lose digits."""
    return [None if each is None else format(each, "f") for each in array.to_pylist()]


def _dates(array: Any, *, seconds: Fraction, integers: Any) -> list[Any]:
    """Return days as ISO 8601 has them."""
    return [
        None if each is None else _moment(math.floor(each * seconds)).date().isoformat()
        for each in array.view(integers).to_pylist()
    ]


def _timestamps(array: Any, *, unit: str, ending: str) -> list[Any]:
    """Return points in time as ISO 8601 has them: in UTC, or of no zone."""
    parts, digits = _UNITS[unit]

    def text(value: int) -> str:
        whole, rest = divmod(value, parts)
        return f"{_moment(whole).isoformat()}{_fraction(rest, digits)}{ending}"

    return [None if each is None else text(each) for each in array.view(pa.int64()).to_pylist()]


def _times(array: Any, *, unit: str, integers: Any) -> list[Any]:
    """Return times of a day as ISO 8601 has them."""
    parts, digits = _UNITS[unit]

    def text(value: int) -> str:
        whole, rest = divmod(value, parts)
        if not 0 <= whole < _DAY_SECONDS:
            raise UnfitValueError("is no time of a day")
        return f"{_moment(whole).time().isoformat()}{_fraction(rest, digits)}"

    return [None if each is None else text(each) for each in array.view(integers).to_pylist()]


def _moment(seconds: int) -> datetime:
    """Return a point in time."""
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError as error:
        raise UnfitValueError("lies outside of the years 1 to 9999") from error


def _fraction(rest: int, digits: int) -> str:
    """Return parts of a second as digits, none where there are none."""
    return f".{rest:0{digits}d}" if rest else ""


def _lists(array: Any, *, values: Reader) -> list[Any]:
    """Return lists."""
    return [None if part is None else part[0] for part in _parts(array, [(array.values, values)])]


def _structs(array: Any, *, names: Sequence[str], readers: Sequence[Reader]) -> list[Any]:
    """Return structs as objects."""
    columns = [reader(field) for reader, field in zip(readers, array.flatten(), strict=True)]
    rows = zip(*columns, strict=True) if columns else ((),) * len(array)
    return [
        dict(zip(names, row, strict=True)) if valid else None
        for valid, row in zip(array.is_valid().to_pylist(), rows, strict=True)
    ]


def _maps(array: Any, *, values: Reader) -> list[Any]:
    """Return maps as objects."""
    return [
        None if part is None else _object(*part)
        for part in _parts(array, [(array.keys, _plain), (array.items, values)])
    ]


def _object(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return an object of JSON."""
    found = dict(zip(keys, values, strict=True))
    if len(found) < len(keys):
        raise UnfitValueError("a map has a key twice")
    return found


def _parts(array: Any, children: Sequence[tuple[Any, Reader]]) -> Iterator[Sequence[list[Any]] | None]:
    """Iterate over what an array of lists holds at each place, by child; None where it holds nothing."""
    offsets = array.offsets.to_pylist()
    first, last = offsets[0], offsets[-1]
    columns = [read(child.slice(first, last - first)) for child, read in children]
    for valid, (begin, end) in zip(array.is_valid().to_pylist(), itertools.pairwise(offsets), strict=True):
        yield [column[begin - first : end - first] for column in columns] if valid else None
