"""The syntax of metric math expressions.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

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
