"""JSON as every reader takes it: what Python's takes and others do not is refused before anything is spent.

Workers read and write JSON with orjson, which has whole numbers of 64 bits, no lone surrogates, and 254
levels at most (https://github.com/ijl/orjson).
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterable
from typing import Any, Final

_MOST_LEVELS: Final = 128
_LEAST_NUMBER: Final = -(2**63)
_MOST_NUMBER: Final = 2**64 - 1
_LONGEST_SHOWN: Final = 40


def read_json(content: bytes) -> Any:
    """Return the value of a text of JSON.

    Parameters
    ----------
    content
        The text, in UTF-8.

    Raises
    ------
    ValueError
        If it is none, or other readers would not take it.
    """
    text = content.removeprefix(codecs.BOM_UTF8).decode()
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    # Each level has a bracket.
    if text.count("[") + text.count("{") > _MOST_LEVELS and _is_deep(value):
        raise ValueError(_too_deep())
    if "\\u" in text and _has_surrogate(value):
        raise ValueError("half of a surrogate pair is no character")
    return value


def _is_deep(value: Any) -> bool:
    """Return whether a value has more levels than it may."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [child for each in level for child in _children(each)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    """Return what an array or an object holds."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _has_surrogate(value: Any) -> bool:
    """Return whether a text of a value is none in UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _too_deep() -> str:
    """Return what is wrong with a value of too many levels."""
    return f"nested more than {_MOST_LEVELS} deep"


def _whole(digits: str) -> int:
    """Read a whole number."""
    number = int(digits) if len(digits) <= _LONGEST_SHOWN else _MOST_NUMBER + 1
    if not _LEAST_NUMBER <= number <= _MOST_NUMBER:
        raise ValueError(f"{_shown(digits)} is no whole number of 64 bits; write it as a text")
    return number


def _real(digits: str) -> float:
    """Read a number with a point or an exponent."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{_shown(digits)} is more than a number may be")
    return number


def _constant(name: str) -> None:
    """Refuse what Python's reader takes and JSON does not have."""
    raise ValueError(f"{name} is no value of JSON")


def _shown(digits: str) -> str:
    """Return a number as a message shows it."""
    return digits if len(digits) <= _LONGEST_SHOWN else f"{digits[:_LONGEST_SHOWN]}..."


_DECODER: Final = json.JSONDecoder(parse_constant=_constant, parse_float=_real, parse_int=_whole)
