"""Checks a body against the limits of its model, and removes what callers may not choose."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference_contracts.request_limits import RequestLimits, body_faults
from request_filter.caller_fields import removed_fields, takes_forms
from request_filter.refused_request import RefusedRequestError

_FORM = "multipart/form-data"
#: Most values of a body, of which each takes up to 80 bytes and half a microsecond to read. The most that an
#: engine takes are the tokens of a prompt.
_MOST_VALUES = 2_000_000


@dataclass(frozen=True, slots=True)
class CheckedBody:
    """A body that is passed on."""

    content: bytes
    """Its bytes: those of the caller, unless something was removed."""
    removed: list[str]
    """Names of removed fields."""


def checked_body(
    content: bytes, path: str, content_type: str, limits: RequestLimits, allowed: frozenset[str]
) -> CheckedBody:
    """Return what is passed on of a body.

    content: The body.
    path, content_type: Path of the request, and the type that the caller states.
    limits: Limits of the model's requests.
    allowed: Fields that are passed on although they would be removed.
    Raises RefusedRequestError if it is not a JSON object that every reader reads alike, or is beyond a limit.
    """
    if content_type.lower().startswith(_FORM) and takes_forms(path):
        return CheckedBody(content, [])
    # More than there are: commas and brackets of texts are counted too.
    values = sum(map(content.count, (b",", b"[", b"{")))
    if values > _MOST_VALUES:
        message = f"the body has about {values:,} values; the maximum is {_MOST_VALUES:,}"
        raise RefusedRequestError(400, message, "beyond_limit")
    body = _object(content)
    for fault in body_faults(body, limits):
        raise RefusedRequestError(400, f"{fault.message}", "beyond_limit", fault.param)
    removed = removed_fields(body, allowed)
    if not removed:
        return CheckedBody(content, [])
    kept = {name: value for name, value in body.items() if name not in removed}
    return CheckedBody(json.dumps(kept, ensure_ascii=False).encode("utf-8", "surrogatepass"), removed)


def _object(content: bytes) -> Mapping[str, Any]:
    try:
        value = _DECODER.decode(content.decode("utf-8"))
    except RecursionError:
        raise RefusedRequestError(400, "the body is nested too deep", "beyond_limit") from None
    except ValueError as error:
        raise RefusedRequestError(
            400, f"the body must be one JSON object in UTF-8: {error}", "bad_json"
        ) from None
    if not isinstance(value, dict):
        raise RefusedRequestError(400, "the body must be one JSON object", "bad_json")
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that comes twice: one reader takes the first value, and another the last."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the name {twice[:40]!r} comes twice in an object")
    return found


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is too large for a number")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_real)
