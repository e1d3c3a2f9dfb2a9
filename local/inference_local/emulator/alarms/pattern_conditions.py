"""Conditions of filter patterns: ``$.latency > 50 && $.status = 4*``.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

#: Returns whether a selector's value exists, and the value.
Look: TypeAlias = "Callable[[str], tuple[bool, Any]]"
Condition: TypeAlias = "Callable[[Look], bool]"

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>\"(?:[^\"\\]|\\.)*\")|(?P<expression>%[^%]*%)|(?P<sign>&&|\|\||!=|<=|>=|[=<>()])"
    r"|(?P<word>(?:\[[^\]]*\]|[^\s=<>!()&|\"])+))"
)
_ORDERS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CONSTANTS: Final[Mapping[str, object]] = {"NULL": None, "TRUE": True, "FALSE": False}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def parse_condition(text: str) -> Condition:
    """Return a condition. ``&&`` binds stronger than ``||``.

    Raises ValueError if the text is no condition.
    """
    reader = _ConditionReader(text)
    condition = reader.any_of()
    reader.end()
    return condition


class _ConditionReader:
    def __init__(self, text: str) -> None:
        self._source = text
        self._tokens: list[_Token] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise self._wrong(text[position:].strip())
            self._tokens.append(_Token(match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self._at = 0

    def any_of(self) -> Condition:
        conditions = [self._all_of()]
        while self._sees("||"):
            conditions.append(self._all_of())
        return conditions[0] if len(conditions) == 1 else lambda look: any(each(look) for each in conditions)

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._wrong(self._tokens[self._at].text)

    def _all_of(self) -> Condition:
        conditions = [self._one()]
        while self._sees("&&"):
            conditions.append(self._one())
        return conditions[0] if len(conditions) == 1 else lambda look: all(each(look) for each in conditions)

    def _one(self) -> Condition:
        if self._sees("("):
            condition = self.any_of()
            if not self._sees(")"):
                raise self._wrong("a missing )")
            return condition
        selector = self._take("word")
        if self._sees("NOT"):
            if not self._sees("EXISTS"):
                raise self._wrong("NOT without EXISTS")
            return lambda look: not look(selector)[0]
        if self._sees("IS"):
            word = self._take("word")
            if word not in _CONSTANTS:
                raise self._wrong(f"IS {word}")
            return lambda look: _is(look(selector), _CONSTANTS[word])
        sign = self._take("sign")
        if sign in _ORDERS:
            limit = _number(self._take("word"))
            if limit is None:
                raise self._wrong(f"{sign} without a number")
            return lambda look: _in_order(look(selector), sign, limit)
        if sign not in ("=", "!="):
            raise self._wrong(sign)
        matches = self._literal()
        wanted = sign == "="
        return lambda look: _matches(look(selector), matches, wanted=wanted)

    def _literal(self) -> Callable[[Any], bool]:
        token = self._next()
        if token.kind == "expression":
            found = re.compile(token.text[1:-1])
            return lambda value: bool(found.search(_text(value)))
        if token.kind == "text":
            pattern = _wildcard(re.sub(r"\\(.)", r"\1", token.text[1:-1]))
        elif token.kind == "word":
            number = _number(token.text)
            if number is not None:
                return lambda value: _number(_text(value)) == number
            pattern = _wildcard(token.text)
        else:
            raise self._wrong(token.text)
        return lambda value: bool(pattern.fullmatch(_text(value)))

    def _sees(self, text: str) -> bool:
        found = self._at < len(self._tokens) and self._tokens[self._at].text == text
        self._at += found
        return found

    def _next(self) -> _Token:
        if self._at == len(self._tokens):
            raise self._wrong("its end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, kind: str) -> str:
        token = self._next()
        if token.kind != kind:
            raise self._wrong(token.text)
        return token.text

    def _wrong(self, found: str) -> ValueError:
        return ValueError(f"the filter pattern {self._source.strip()!r} cannot be read at {found!r}")


def _wildcard(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")), re.DOTALL)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is(found: tuple[bool, Any], constant: object) -> bool:
    exists, value = found
    return exists and value is constant


def _is_value(found: tuple[bool, Any]) -> bool:
    """Return whether a selector points at a string or a number. No condition matches anything else."""
    exists, value = found
    return exists and isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _in_order(found: tuple[bool, Any], sign: str, limit: float) -> bool:
    value = _number(_text(found[1])) if _is_value(found) else None
    return value is not None and _ORDERS[sign](value, limit)


def _matches(found: tuple[bool, Any], matches: Callable[[Any], bool], *, wanted: bool) -> bool:
    return _is_value(found) and matches(found[1]) == wanted
