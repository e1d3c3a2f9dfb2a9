"""What a request may ask of an engine, and how a body is checked against it.

Some fields end an engine with all its requests if they are too large, because it checks them only where it
computes. The filter beside each entry point and the preparation of batch jobs check them before.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

#: What a bound limits: the entries of a list or object, a number, or the bytes of the strings of a list.
Counts = Literal["entries", "value", "bytes"]

#: Fields with a schema, a pattern or a grammar at the top of a body. ``guided_…`` are earlier names;
#: ``regex`` and ``ebnf`` are SGLang's.
_CONSTRAINTS: Final[Mapping[str, str]] = {
    "guided_json": "schema",
    "guided_regex": "regex",
    "guided_grammar": "grammar",
    "guided_choice": "choice",
    "json_schema": "schema",
    "regex": "regex",
    "ebnf": "grammar",
    "structural_tag": "schema",
    "response_format": "schema",
    "text": "schema",
    "tools": "schema",
    "functions": "schema",
}
#: Kinds of the members of ``structured_outputs``; the others are schemas.
_OUTPUTS: Final[Mapping[str, str]] = {"regex": "regex", "grammar": "grammar", "choice": "choice"}
#: A counted repetition of a regular expression or a grammar, such as ``{1,100}``. No two parts match the same
#: space, so that a long text of spaces is read once.
_REPEAT: Final = re.compile(r"\{\s*(\d+)\s*(?:,\s*(?:(\d+)\s*)?)?\}")


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a field may have."""

    field: str
    """Field of the body."""
    counts: Counts
    """What `most` limits."""
    most: int
    """The largest allowed number."""


@dataclass(frozen=True, slots=True)
class StructureLimits:
    """What schemas, patterns and grammars may have, so that an engine compiles them in seconds."""

    levels: int
    """Levels of arrays and objects of a whole body."""
    schema_bytes: int
    """Bytes of all schemas and grammars of a body together."""
    pattern_length: int
    """Characters of a regular expression."""
    pattern_copies: int
    """Copies of its parts that counted repetitions add to a regular expression: 99 for ``a{1,100}``."""
    copies: int
    """Such copies in all patterns and grammars of a body together."""
    choices: int
    """Entries of a list of choices, and of an ``enum``."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The limits of the requests of one model."""

    bounds: tuple[Bound, ...]
    """Bounds of single fields."""
    structure: StructureLimits
    """Limits of schemas, patterns and grammars."""

    def as_record(self) -> dict[str, Any]:
        """Return the limits as a JSON object."""
        # In lists, because a task definition of ECS has little room.
        bounds = [[each.field, each.counts, each.most] for each in self.bounds]
        return {"bounds": bounds, "structure": asdict(self.structure)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> RequestLimits:
        """Return the limits of an object that `as_record` made."""
        bounds = tuple(Bound(*each) for each in record["bounds"])
        return cls(bounds, StructureLimits(**record["structure"]))


@dataclass(frozen=True, slots=True)
class BodyFault:
    """Something in a body that an engine must not get."""

    param: str | None
    """The field, such as ``allowed_token_ids``. None for the whole body."""
    message: str
    """What was found, and what is allowed."""


def body_faults(body: Mapping[str, Any], limits: RequestLimits) -> Iterator[BodyFault]:
    """Iterate over the fields of a body that are beyond the limits.

    body: The body, as JSON gives it.
    limits: The limits of its model.
    Yields: One for each bound that is passed.
    """
    if _deeper(body, limits.structure.levels):
        yield BodyFault(None, f"the body is nested more than {limits.structure.levels} levels deep")
        return
    for bound in limits.bounds:
        value = body.get(bound.field)
        if value is not None and (found := _amount(value, bound)) is not None and found > bound.most:
            yield BodyFault(bound.field, _message(bound, found))
    yield from _structure_faults(body, limits.structure)


def _message(bound: Bound, found: float) -> str:
    """Return what is wrong with a field."""
    if bound.most == 0:
        return f"{bound.field}: is not accepted here; leave it out"
    of = {"entries": "entries", "value": "", "bytes": "bytes"}[bound.counts]
    shown = f"{found:,} {of}".strip() if found < float("1e15") else "more"
    return f"{bound.field}: got {shown}; the maximum is {f'{bound.most:,} {of}'.strip()}"


def _amount(value: Any, bound: Bound) -> float | None:
    """Return how much a field has of what is counted. None if its kind has nothing of it."""
    if bound.counts == "value":
        # True counts as a number in Python, and `logprobs` may be a truth value.
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if bound.counts == "entries":
        return len(value) if isinstance(value, list | dict) else None
    words = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return sum(_bytes(each) for each in words if isinstance(each, str))


def _bytes(word: str) -> int:
    """Return the bytes of a word and of a space before it, also if a tokenizer takes its letters apart."""
    apart = unicodedata.normalize("NFKD", word)
    return 1 + max(len(each.encode("utf-8", "surrogatepass")) for each in (word, apart))


def _deeper(value: Any, levels: int) -> bool:
    """Return whether a value has more levels of arrays and objects than allowed."""
    level = [value]
    for _ in range(levels):
        level = [child for each in level for child in _children(each) if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    """Return the children of an array or object; of anything else none."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _structure_faults(body: Mapping[str, Any], limits: StructureLimits) -> Iterator[BodyFault]:
    """Iterate over schemas, patterns and grammars that an engine would compile for too long."""
    size, copies = 0, 0
    for param, kind, value in _structures(body):
        size += len(value if isinstance(value, str) else json.dumps(value))
        if size > limits.schema_bytes:
            message = f"schemas and grammars of a request have at most {limits.schema_bytes:,} bytes together"
            yield BodyFault(param, f"{param}: {message}")
            return
        if kind == "choice":
            if isinstance(value, list) and len(value) > limits.choices:
                message = f"got {len(value):,} choices; the maximum is {limits.choices:,}"
                yield BodyFault(param, f"{param}: {message}")
            continue
        patterns: Iterable[str] = [value] if isinstance(value, str) else ()
        if kind == "schema":
            found = _patterns(value, limits)
            if isinstance(found, str):
                yield BodyFault(param, f"{param}: {found}")
                continue
            patterns = found
        for pattern in patterns:
            if kind != "grammar" and len(pattern) > limits.pattern_length:
                message = (
                    f"a pattern has {len(pattern):,} characters, the maximum is {limits.pattern_length:,}"
                )
                yield BodyFault(param, f"{param}: {message}")
                return
            each = _copies(pattern)
            copies += each
            if each > limits.pattern_copies or copies > limits.copies:
                yield BodyFault(param, f"{param}: {_too_many_copies(limits)}")
                return


def _structures(body: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Iterate over what an engine compiles: the field, the kind, and the schema, pattern or grammar."""
    for field, kind in _CONSTRAINTS.items():
        if (value := body.get(field)) is not None:
            yield field, kind, value
    outputs = body.get("structured_outputs")
    if isinstance(outputs, dict):
        for name, value in outputs.items():
            if value is not None:
                yield f"structured_outputs.{name}", _OUTPUTS.get(name, "schema"), value


def _patterns(schema: Any, limits: StructureLimits) -> list[str] | str:
    """Return the patterns of a schema, wherever they are, or what is wrong with it."""
    if isinstance(schema, str):
        # A schema may be the text of one. The engine refuses a text that is not JSON.
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):
            return []
    if _deeper(schema, limits.levels):
        return f"nested more than {limits.levels} levels deep"
    found: list[str] = []
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            named = value.get("patternProperties")
            patterns = [value.get("pattern"), *(named if isinstance(named, dict) else ())]
            found += [each for each in patterns if isinstance(each, str)]
            listed = value.get("enum")
            if isinstance(listed, list) and len(listed) > limits.choices:
                return f"an enum has {len(listed):,} values; the maximum is {limits.choices:,}"
        waiting += [each for each in _children(value) if isinstance(each, dict | list | str)]
    return found


def _too_many_copies(limits: StructureLimits) -> str:
    return (
        f"counted repetitions such as {{1,100}} may add {limits.pattern_copies:,} copies to a pattern and "
        f"{limits.copies:,} to all patterns of a request; use * or smaller counts"
    )


def _copies(text: str) -> int:
    """Return how many copies of its parts counted repetitions add to a regular expression or a grammar.

    ``[a-z]{1,100}`` adds 99, and ``([a-z]{1,100}){1,100}`` 9,999.
    """
    sums, last, place = [0], 0, 0
    copies = 0
    while place < len(text):
        letter = text[place]
        repeat = _REPEAT.match(text, place) if letter == "{" else None
        if repeat:
            # The number of digits is bounded, so that a large count stays cheap.
            count = max(1, *(int(each[:9]) for each in repeat.groups() if each))
            added = last * (count - 1)
            copies += added
            sums[-1] += added
            last, place = last * count, repeat.end()
            continue
        if letter == "(":
            sums.append(0)
            last, place = 0, place + 1
            continue
        if letter == ")" and len(sums) > 1:
            last, place = sums.pop(), place + 1
            sums[-1] += last
            continue
        place = _after_class(text, place) if letter == "[" else place + (2 if letter == "\\" else 1)
        last = 1
        sums[-1] += 1
    return copies


def _after_class(text: str, place: int) -> int:
    """Return the place after a class of characters, such as ``[a-z]``."""
    place += 2 if text[place + 1 : place + 2] == "]" else 1
    while place < len(text) and text[place] != "]":
        place += 2 if text[place] == "\\" else 1
    return place + 1
