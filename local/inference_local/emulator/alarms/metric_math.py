"""Computes metric math expressions.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from inference_local.emulator.alarms.math_functions import (
    ACROSS,
    ALONG,
    EACH,
    TIMES,
    WHOLE,
    ExpressionError,
    Node,
    Number,
    QuotedText,
    Reference,
    Series,
    filled_linearly,
    filled_with,
    filled_with_previous,
)

Value: TypeAlias = "float | Series | list[Series]"

_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
}
_TRUTH: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "AND": lambda left, right: bool(left and right),
    "OR": lambda left, right: bool(left or right),
}


@dataclass(frozen=True, slots=True)
class MathInput:
    """What an expression may refer to."""

    metrics: Mapping[str, Series]
    """Values of each metric of the request by its id: start of the period to value."""
    expressions: Mapping[str, Node]
    """The other expressions by their id."""
    period_seconds: int
    """Length of a period."""
    starts: Sequence[float]
    """Starts of all periods that are computed, in order. Metrics may lack some."""


def compute(node: Node, given: MathInput) -> Series:
    """Return the time series of an expression.

    Raises ExpressionError if it is not one time series, refers to an unknown id, or uses a function wrongly.
    """
    value = _value(node, given, ())
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    if not isinstance(value, Mapping):
        kind = "an array of time series" if isinstance(value, list) else "a number"
        raise ExpressionError(f"the result of an alarm's expression must be one time series, not {kind}")
    return value


def _value(node: Node, given: MathInput, within: tuple[str, ...]) -> Value:
    if isinstance(node, Number):
        return node.value
    if isinstance(node, QuotedText):
        raise ExpressionError(f"{node.value!r} can only be the argument of METRICS")
    if isinstance(node, Reference):
        return _referred(node.name, given, within)
    name = node.function
    if name == "METRICS":
        part = node.arguments[0].value if node.arguments and isinstance(node.arguments[0], QuotedText) else ""
        return [series for identifier, series in given.metrics.items() if part in identifier]
    if name == "FILL":
        return _filled(node.arguments, given, within)
    return _called(name, [_value(each, given, within) for each in node.arguments], given)


def _referred(name: str, given: MathInput, within: tuple[str, ...]) -> Value:
    if name in given.metrics:
        return given.metrics[name]
    if name not in given.expressions or name in within:
        raise ExpressionError(
            f"the expression refers to {name!r}, which is no metric or expression before it"
        )
    return _value(given.expressions[name], given, (*within, name))


def _called(name: str, values: list[Value], given: MathInput) -> Value:
    if name == "[]":
        return [series for value in values for series in _array(value)]
    match values:
        case [condition, then] if name == "IF":
            return _chosen(condition, then, {})
        case [condition, then, otherwise] if name == "IF":
            return _chosen(condition, then, otherwise)
        case [left, right] if name in _ARITHMETIC or name in _TRUTH:
            return _combined(name, left, right)
        case [value] if (found := _function(name, value, given)) is not None:
            return found
    raise ExpressionError(
        f"{name} with {len(values)} arguments is no function of metric math that is emulated"
    )


def _function(name: str, value: Value, given: MathInput) -> Value | None:
    """Apply a function of one argument. None if there is none for this argument."""
    if isinstance(value, float):
        if name == "TIME_SERIES":
            return dict.fromkeys(given.starts, value)
        return EACH[name](value) if name in EACH else None
    if name == "PERIOD":
        return float(given.period_seconds)
    if isinstance(value, list):
        return _of_array(name, value)
    return _of_series(name, value, given)


def _of_series(name: str, series: Series, given: MathInput) -> Value | None:
    if name in TIMES:
        return {start: TIMES[name](start) for start in given.starts}
    if name in WHOLE:
        return WHOLE[name](list(series.values()))
    return ALONG[name](series) if name in ALONG else None


def _of_array(name: str, array: list[Series]) -> Value | None:
    if name == "METRIC_COUNT":
        return float(len(array))
    if name == "REMOVE_EMPTY":
        return [series for series in array if series]
    if name in ACROSS:
        return ACROSS[name](array)
    return [ALONG[name](series) for series in array] if name in ALONG else None


def _combined(name: str, left: Value, right: Value) -> Value:
    """Apply an operator. A missing value of one time series is 0; a point divided by zero is dropped."""
    if isinstance(left, list) or isinstance(right, list):
        lefts, rights = _paired(left, right)
        return [_series(_combined(name, one, other)) for one, other in zip(lefts, rights, strict=True)]
    if isinstance(left, float) and isinstance(right, float):
        found = _applied(name, left, right)
        if found is None:
            raise ExpressionError(f"{left} {name} {right} has no value")
        return found
    starts = sorted({*_points(left), *_points(right)})
    computed = {start: _applied(name, _at(left, start), _at(right, start)) for start in starts}
    return {start: value for start, value in computed.items() if value is not None}


def _applied(name: str, left: float, right: float) -> float | None:
    if name in _TRUTH:
        return float(_TRUTH[name](left, right))
    try:
        found = _ARITHMETIC[name](left, right)
    except (ZeroDivisionError, OverflowError):
        return None
    return found if isinstance(found, float) and math.isfinite(found) else None


def _paired(left: Value, right: Value) -> tuple[list[Value], list[Value]]:
    count = max(len(value) for value in (left, right) if isinstance(value, list))
    sides: list[list[Value]] = [
        list(value) if isinstance(value, list) else [value] * count for value in (left, right)
    ]
    if len(sides[0]) != len(sides[1]):
        raise ExpressionError("an operator has two arrays with different numbers of time series")
    return sides[0], sides[1]


def _chosen(condition: Value, then: Value, otherwise: Value) -> Value:
    """Compute IF: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html#using-IF-expressions."""
    if isinstance(condition, float):
        return then if condition else otherwise
    found: Series = {}
    for start, value in _series(condition).items():
        if value:
            # A point that the second argument lacks counts as 0.
            found[start] = _at(then, start)
        elif isinstance(otherwise, float) or start in _series(otherwise):
            found[start] = _at(otherwise, start)
    return found


def _filled(arguments: Sequence[Node], given: MathInput, within: tuple[str, ...]) -> Value:
    match arguments:
        case [filled, filler]:
            value = _value(filled, given, within)
        case _:
            raise ExpressionError("FILL needs a time series and a filler")
    if isinstance(value, float):
        raise ExpressionError("FILL fills time series, not numbers")
    words = {"REPEAT": filled_with_previous, "LINEAR": filled_linearly}
    if isinstance(filler, Reference) and filler.name in words:
        by = words[filler.name]
        found = [by(series, given.starts) for series in _array(value)]
    else:
        replaced = _value(filler, given, within)
        filling = dict.fromkeys(given.starts, replaced) if isinstance(replaced, float) else _series(replaced)
        found = [filled_with(series, filling) for series in _array(value)]
    return found if isinstance(value, list) else found[0]


def _array(value: Value) -> list[Series]:
    if isinstance(value, float):
        raise ExpressionError("a number stands where a time series must be")
    return value if isinstance(value, list) else [value]


def _series(value: Value) -> Series:
    if isinstance(value, (float, list)):
        raise ExpressionError("an array or a number stands where a time series must be")
    return value


def _points(value: Value) -> Sequence[float]:
    return () if isinstance(value, float) else tuple(_series(value))


def _at(value: Value, start: float) -> float:
    return value if isinstance(value, float) else _series(value).get(start, 0.0)
