"""Wording of messages: values that were found, allowed values and suggestions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

_MAXIMUM_SHOWN = 60
_MAXIMUM_LISTED = 12
_PLAIN_KEY = re.compile(r"[\w.-]{1,60}")

#: Keys and list indexes from the document's root.
Path = tuple[str | int, ...]


def quote(value: object) -> str:
    """Return a value as the user would write it, on one short line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value if len(value) <= _MAXIMUM_SHOWN else value[: _MAXIMUM_SHOWN - 1] + "…")
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    return "nothing" if value is None else shorten(str(value))


def shorten(text: str) -> str:
    """Return text cut to what a message can show."""
    return text if len(text) <= _MAXIMUM_SHOWN else text[: _MAXIMUM_SHOWN - 1] + "…"


def listing(values: Iterable[object]) -> str:
    """Return quoted values with commas; a long list ends with how many more there are."""
    quoted = [quote(value) for value in values]
    if len(quoted) <= _MAXIMUM_LISTED:
        return ", ".join(quoted)
    return f"{', '.join(quoted[:_MAXIMUM_LISTED])} and {len(quoted) - _MAXIMUM_LISTED} more"


def suggestion(got: str, allowed: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the closest allowed value, or nothing when none is close."""
    return _suggestion(got, tuple(allowed))


# A file may have the same mistake hundreds of times, and comparing is slow.
@lru_cache(maxsize=1024)
def _suggestion(got: str, allowed: tuple[str, ...]) -> str:
    by_folded = {value.casefold(): value for value in allowed}
    matches = difflib.get_close_matches(got.casefold()[:_MAXIMUM_SHOWN], by_folded, n=1)
    return f"; did you mean {quote(by_folded[matches[0]])}?" if matches else ""


def path_text(path: Path) -> str:
    """Return a path as ``spec.models[0].weights``; unusual keys are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{quote(part)}]"
    return text


def allowed(noun: str, values: Collection[str]) -> str:
    """Return ``pools are 'a', 'b'``, in the singular for one."""
    return f"the only {noun} is {listing(values)}" if len(values) == 1 else f"{noun}s are {listing(values)}"


def duplicates(values: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield index and value of each value that occurred before."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield index, value
        seen.add(value)
