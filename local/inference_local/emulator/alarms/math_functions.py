"""Metric math on time series: its syntax, and its functions."""

from __future__ import annotations

import contextlib
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from typing import Final, TypeAlias

# The syntax of metric math expressions.
#
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z]\w*)|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/^<>(),\[\]]))"
)
#: Binary operators by precedence, the weakest first.
_LEVELS: Final = (
    ("OR", "||"),
    ("AND", "&&"),
    ("==", "!=", "<=", ">=", "<", ">"),
    ("+", "-"),
    ("*", "/"),
)
_SAME: Final = {"||": "OR", "&&": "AND"}
#: Functions that cannot be computed from the metrics of an alarm alone, and those of arrays in an order.
NOT_EMULATED: Final = frozenset(
    {
        *("ANOMALY_DETECTION_BAND", "DB_PERF_INSIGHTS", "INSIGHT_RULE_METRIC", "LAMBDA", "SEARCH", "SELECT"),
        *("SERVICE_QUOTA", "FIRST", "LAST", "SLICE", "SORT"),
    }
)


class ExpressionError(ValueError):
    """An expression of metric math that CloudWatch or this emulation refuses."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class QuotedText:
    """A text in quotation marks, argument of METRICS."""

    value: str


@dataclass(frozen=True, slots=True)
class Reference:
    """The id of a query, or a word such as REPEAT."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator with its operands. ``[]`` makes an array, ``negate`` is the unary minus."""

    function: str
    arguments: tuple[Node, ...]


Node: TypeAlias = Number | QuotedText | Reference | Call


def parse(expression: str) -> Node:
    """Return the tree of an expression.

    Raises ExpressionError if it has another syntax. The text shows where.
    """
    reader = _Reader(expression)
    node = reader.level(0)
    reader.end()
    return node


class _Reader:
    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while expression[position:].strip():
            match = _TOKEN.match(expression, position)
            if match is None or match.lastgroup is None:
                raise self._wrong(expression[position:].strip()[0])
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self._at = 0

    def level(self, depth: int) -> Node:
        """Read operators of this and stronger levels."""
        if depth == len(_LEVELS):
            return self._unary()
        left = self.level(depth + 1)
        while self._text() in _LEVELS[depth]:
            operator = self._take()
            left = Call(_SAME.get(operator, operator), (left, self.level(depth + 1)))
        return left

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._wrong(self._text())

    def _unary(self) -> Node:
        if self._text() == "-":
            self._take()
            return Call("negate", (self._unary(),))
        base = self._operand()
        if self._text() == "^":
            self._take()
            return Call("^", (base, self._unary()))
        return base

    def _operand(self) -> Node:
        kind = self._tokens[self._at][0] if self._at < len(self._tokens) else ""
        text = self._take()
        if kind == "number":
            return Number(float(text))
        if kind == "text":
            return QuotedText(text[1:-1])
        if kind == "name":
            if self._text() != "(":
                return Reference(text)
            if text in NOT_EMULATED:
                raise ExpressionError(f"the function {text} of {self._expression!r} is not emulated")
            self._take()
            return Call(text, self._list(")"))
        if text == "[":
            return Call("[]", self._list("]"))
        if text == "(":
            inner = self.level(0)
            self._expect(")")
            return inner
        raise self._wrong(text)

    def _list(self, end: str) -> tuple[Node, ...]:
        nodes: list[Node] = []
        while self._text() != end:
            if nodes:
                self._expect(",")
            nodes.append(self.level(0))
        self._take()
        return tuple(nodes)

    def _text(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        text = self._text()
        self._at += 1
        return text

    def _expect(self, sign: str) -> None:
        if self._take() != sign:
            self._at -= 1
            raise self._wrong(self._text())

    def _wrong(self, found: str) -> ExpressionError:
        return ExpressionError(
            f"the expression {self._expression!r} has {found!r} where it cannot be"
            if found
            else f"the expression {self._expression!r} ends too early"
        )


#: Start of a period in seconds since 1970 to the value of the period, in order.
Series: TypeAlias = "dict[float, float]"

#: Functions of each value.
EACH: Final[Mapping[str, Callable[[float], float]]] = {
    "ABS": abs,
    "CEIL": lambda value: float(math.ceil(value)),
    "FLOOR": lambda value: float(math.floor(value)),
    "LOG": math.log,
    "LOG10": math.log10,
    "negate": lambda value: -value,
}
#: Functions that make a number of one time series.
WHOLE: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "AVG": lambda values: sum(values) / len(values) if values else 0.0,
    "DATAPOINT_COUNT": lambda values: float(len(values)),
    "MAX": lambda values: max(values, default=0.0),
    "MIN": lambda values: min(values, default=0.0),
    "STDDEV": lambda values: statistics.pstdev(values) if values else 0.0,
    "SUM": lambda values: float(sum(values)),
}
#: Functions of the start of a period. Monday is day 1.
TIMES: Final[Mapping[str, Callable[[float], float]]] = {
    "MINUTE": lambda start: float(_date(start).minute),
    "HOUR": lambda start: float(_date(start).hour),
    "DAY": lambda start: float(_date(start).isoweekday()),
    "DATE": lambda start: float(_date(start).day),
    "MONTH": lambda start: float(_date(start).month),
    "YEAR": lambda start: float(_date(start).year),
    "EPOCH": float,
}


def _date(start: float) -> datetime:
    return datetime.fromtimestamp(start, UTC)


def _at_each(compute: Callable[[Sequence[float]], float]) -> Callable[[Sequence[Series]], Series]:
    """Return a function that computes something of the values that an array has in each period."""

    def across(array: Sequence[Series]) -> Series:
        starts = sorted({start for series in array for start in series})
        return {start: compute([series[start] for series in array if start in series]) for start in starts}

    return across


def _average(array: Sequence[Series]) -> Series:
    """Average an array. Missing values count as 0."""
    return {start: value / len(array) for start, value in _at_each(sum)(array).items()}


#: Functions that make one time series of an array.
ACROSS: Final[Mapping[str, Callable[[Sequence[Series]], Series]]] = {
    "AVG": _average,
    "DATAPOINT_COUNT": _at_each(lambda values: float(len(values))),
    "MAX": _at_each(max),
    "MIN": _at_each(min),
    "STDDEV": _at_each(statistics.pstdev),
    "SUM": _at_each(lambda values: float(sum(values))),
}


def _steps(compute: Callable[[float, float], float]) -> Callable[[Series], Series]:
    """Return a function of the differences of value and time to the point before."""

    def along(series: Series) -> Series:
        return {
            start: compute(value - before, start - earlier)
            for (earlier, before), (start, value) in pairwise(series.items())
        }

    return along


def _each_value(function: Callable[[float], float]) -> Callable[[Series], Series]:
    """Return a function of a series that drops the points for which the given one has no value."""

    def along(series: Series) -> Series:
        found: Series = {}
        for start, value in series.items():
            with contextlib.suppress(ValueError):
                found[start] = function(value)
        return found

    return along


#: Functions that make a time series of a time series.
ALONG: Final[Mapping[str, Callable[[Series], Series]]] = {
    **{name: _each_value(function) for name, function in EACH.items()},
    "DIFF": _steps(lambda difference, _: difference),
    "DIFF_TIME": _steps(lambda _, seconds: seconds),
    "RATE": _steps(lambda difference, seconds: difference / seconds),
    "RUNNING_SUM": lambda series: dict(zip(series, accumulate(series.values()), strict=True)),
}


def filled_with(series: Series, filling: Series) -> Series:
    """Return a series whose missing points are those of another."""
    return dict(sorted({**filling, **series}.items()))


def filled_with_previous(series: Series, starts: Sequence[float]) -> Series:
    """Return a series whose missing points repeat the last value before them."""
    found: Series = {}
    last: float | None = None
    for start in starts:
        last = series.get(start, last)
        if last is not None:
            found[start] = last
    return found


def filled_linearly(series: Series, starts: Sequence[float]) -> Series:
    """Return a series whose gaps are straight lines between the values before and after them."""
    found = dict(series)
    for (start, value), (end, after) in pairwise(series.items()):
        for between in (each for each in starts if start < each < end):
            found[between] = value + (after - value) * (between - start) / (end - start)
    return dict(sorted(found.items()))
