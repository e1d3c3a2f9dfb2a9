"""Reads strict JSON: refuses what Python accepts and other readers do not, before anything is spent.

Workers read and write JSON with orjson. It accepts whole numbers up to 64 bits, no lone surrogates, and at
most 254 levels (https://github.com/ijl/orjson).
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterable
from typing import Any, Final

_MAX_LEVELS: Final = 128
_MIN_NUMBER: Final = -(2**63)
_MAX_NUMBER: Final = 2**64 - 1
_LONGEST_SHOWN: Final = 40


def read_json(content: bytes) -> Any:
    """Return the value of a JSON text.

    content: The text, in UTF-8.
    Raises ValueError if it is not JSON, or other readers would refuse it.
    """
    text = content.removeprefix(codecs.BOM_UTF8).decode()
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    # Each level has a bracket.
    if text.count("[") + text.count("{") > _MAX_LEVELS and _is_deep(value):
        raise ValueError(_too_deep())
    if "\\u" in text and _has_surrogate(value):
        raise ValueError("half of a surrogate pair is not a character")
    return value


def _is_deep(value: Any) -> bool:
    """Return whether a value has more levels than allowed."""
    level = [value]
    for _ in range(_MAX_LEVELS):
        level = [child for each in level for child in _children(each)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    """Return the children of an array or object."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _has_surrogate(value: Any) -> bool:
    """Return whether a text in a value cannot be encoded in UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _too_deep() -> str:
    """Return the error message for too many levels."""
    return f"nested more than {_MAX_LEVELS} deep"


def _whole(digits: str) -> int:
    number = int(digits) if len(digits) <= _LONGEST_SHOWN else _MAX_NUMBER + 1
    if not _MIN_NUMBER <= number <= _MAX_NUMBER:
        raise ValueError(f"{_shown(digits)} does not fit into 64 bits; write it as a string")
    return number


def _real(digits: str) -> float:
    """Read a number with a decimal point or an exponent."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{_shown(digits)} is too large for a number")
    return number


def _constant(name: str) -> None:
    """Refuse constants that Python accepts and JSON does not have."""
    raise ValueError(f"{name} is not a JSON value")


def _shown(digits: str) -> str:
    """Return a number as a message shows it."""
    return digits if len(digits) <= _LONGEST_SHOWN else f"{digits[:_LONGEST_SHOWN]}..."


_DECODER: Final = json.JSONDecoder(parse_constant=_constant, parse_float=_real, parse_int=_whole)
