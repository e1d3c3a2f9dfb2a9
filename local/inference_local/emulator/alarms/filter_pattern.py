"""Filter patterns of log events: terms, JSON and fields separated by spaces.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

# Conditions of filter patterns: ``$.latency > 50 && $.status = 4*``.
#
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html

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


_TERM: Final = re.compile(
    r"\s*(?P<sign>[-?]?)(?:\"(?P<phrase>(?:[^\"\\]|\\.)*)\"|%(?P<expression>[^%]*)%|(?P<word>\S+))"
)
_FIELD: Final = re.compile(r"\[([^\]]*)\]|\"([^\"]*)\"|(\S+)")
_STEP: Final = re.compile(r"\.([\w-]+)|\[(\d+)\]|(?:\.?\[['\"]([^'\"]+)['\"]\])")
_FIELD_NAME: Final = re.compile(r"\s*(?P<name>[\w$-]+)\s*(?P<condition>.*)", re.DOTALL)
_ELLIPSIS: Final = "..."


@dataclass(frozen=True, slots=True)
class EventValues:
    """What a log event has at selectors."""

    content: Mapping[str, Any]
    """The event's JSON object, or its fields by name (``size``) and by position (``7``)."""
    is_json: bool

    def look(self, selector: str) -> tuple[bool, Any]:
        """Return whether a selector has a value (`$.a.b[0]` or `$size` or `size`), and the value."""
        if not self.is_json:
            name = selector.removeprefix("$").removeprefix(".")
            return name in self.content, self.content.get(name)
        value: Any = self.content
        for step in _steps(selector):
            is_element = isinstance(step, int) and isinstance(value, list) and step < len(value)
            if not is_element and not (isinstance(value, dict) and step in value):
                return False, None
            value = value[step]
        return True, value


#: Returns the values of a matching event, None if it does not match.
FilterPattern = Callable[[str], EventValues | None]


@lru_cache(maxsize=1024)
def parse_pattern(pattern: str) -> FilterPattern:
    """Return a function that matches messages of log events.

    Raises ValueError if the pattern has another syntax.
    """
    text = pattern.strip()
    if text.startswith("{"):
        if not text.endswith("}"):
            raise ValueError(f"the filter pattern {pattern!r} has no closing brace")
        return _json_pattern(parse_condition(text[1:-1]))
    if text.startswith("["):
        if not text.endswith("]"):
            raise ValueError(f"the filter pattern {pattern!r} has no closing bracket")
        return _field_pattern(text[1:-1])
    return _term_pattern(text)


def _term_pattern(text: str) -> FilterPattern:
    groups: dict[str, list[Callable[[str], bool]]] = {"": [], "-": [], "?": []}
    for match in _TERM.finditer(text):
        groups[match["sign"]].append(_contains(match))
    needed, refused, optional = groups[""], groups["-"], groups["?"]

    def matches(message: str) -> EventValues | None:
        # Terms with a question mark are ignored beside others.
        found = any(term(message) for term in optional) if optional and not needed and not refused else True
        found = found and all(term(message) for term in needed)
        found = found and not any(term(message) for term in refused)
        return EventValues({}, is_json=False) if found else None

    return matches


def _contains(match: re.Match[str]) -> Callable[[str], bool]:
    if match["expression"] is not None:
        expression = re.compile(match["expression"])
        return lambda message: bool(expression.search(message))
    term = match["word"] if match["phrase"] is None else re.sub(r"\\(.)", r"\1", match["phrase"])
    # The pattern `" "` matches every event.
    return lambda message: term in message or not term.strip()


def _json_pattern(condition: Condition) -> FilterPattern:
    def matches(message: str) -> EventValues | None:
        try:
            content = json.loads(message)
        except ValueError:
            return None
        values = EventValues(content, is_json=True)
        return values if isinstance(content, dict) and condition(values.look) else None

    return matches


@lru_cache(maxsize=1024)
def _steps(selector: str) -> tuple[str | int, ...]:
    path = selector.removeprefix("$")
    steps = list(_STEP.finditer(path))
    if not selector.startswith("$") or "".join(match[0] for match in steps) != path:
        raise ValueError(f"{selector!r} is no property selector such as $.name or $.list[0].name")
    return tuple(int(match[2]) if match[2] else match[1] or match[3] for match in steps)


def _field_pattern(text: str) -> FilterPattern:
    parts = [part.strip() for part in _split(text)] if text.strip() else []
    if parts.count(_ELLIPSIS) > 1:
        raise ValueError(f"the filter pattern [{text}] has more than one ellipsis")
    fields = [_field(part) for part in parts if part != _ELLIPSIS]
    names = [name for name, _ in fields]
    conditions = [condition for _, condition in fields if condition]
    before = parts.index(_ELLIPSIS) if _ELLIPSIS in parts else len(parts)

    def matches(message: str) -> EventValues | None:
        values = ["".join(part or "" for part in match.groups()) for match in _FIELD.finditer(message)]
        if len(values) < len(names):
            return None
        content = {str(position): value for position, value in enumerate(values, start=1)}
        content.update(zip(names[:before], values, strict=False))
        after = names[before:]
        content.update(zip(after, values[len(values) - len(after) :], strict=True))
        event = EventValues(content, is_json=False)
        return event if all(condition(event.look) for condition in conditions) else None

    return matches


def _split(text: str) -> Sequence[str]:
    """Split at commas that are not in quotation marks."""
    return re.findall(r"(?:\"(?:[^\"\\]|\\.)*\"|[^,\"])+", text)


def _field(part: str) -> tuple[str, Condition | None]:
    match = _FIELD_NAME.fullmatch(part)
    if match is None:
        raise ValueError(f"{part!r} is no field of a filter pattern")
    return match["name"], parse_condition(part) if match["condition"] else None
