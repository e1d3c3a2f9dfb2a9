"""Reads the bodies of requests, and reports all of their errors at once."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from inference_contracts.door_key_acts import KeyRequest, KeyRequestError, key_budget

#: Bytes of a body: far above the longest request.
_LONGEST: Final = 64 * 1024
#: Largest number of any limit. Dollars are stored in billionths, as 64-bit numbers.
_MOST: Final = 1_000_000_000

_Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


_TEXT: Final = (_is_text, "a string")
_COUNT: Final = (_is_count, f"a whole number from 0 to {_MOST:,}")
_NUMBER: Final = (_is_number, f"a number from 0 to {_MOST:,}")

_KEY_FIELDS: Final[Mapping[str, tuple[_Check, str]]] = {
    "team": _TEXT,
    "name": _TEXT,
    "project": _TEXT,
    "models": (_is_texts, "a list of strings"),
    "days": _COUNT,
    "budget": (_is_object, "an object"),
}
_BUDGET_FIELDS: Final[Mapping[str, tuple[_Check, str]]] = {
    "usdPerDay": _NUMBER,
    "usdPerMonth": _NUMBER,
    "requestsPerMinute": _COUNT,
    "tokensPerMinute": _COUNT,
    "requestsAtOnce": _COUNT,
}
_ROTATION_FIELDS: Final[Mapping[str, tuple[_Check, str]]] = {
    "overlapHours": _COUNT,
    "again": (_is_flag, "true or false"),
}


def read_body(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object of a request; empty without a body. Raises KeyRequestError for anything else."""
    body = event.get("body") or "{}"
    try:
        text = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
        if len(text) > _LONGEST:
            raise KeyRequestError(f"body: got {len(text)} bytes, allowed are {_LONGEST}")
        found = json.loads(text)
    except (ValueError, RecursionError, binascii.Error) as error:
        raise KeyRequestError(f"body: is not JSON ({error}); send a JSON object") from error
    if not isinstance(found, dict):
        raise KeyRequestError("body: is JSON, but not an object; send a JSON object")
    return found


def key_request(body: Mapping[str, Any], *, team: str) -> KeyRequest:
    """Return the key that a body asks for. Raises KeyRequestError with all wrong fields.

    team: The team if the body names none.
    """
    problems = _problems(body, _KEY_FIELDS, "")
    limits = body.get("budget") or {}
    if isinstance(limits, dict):
        problems += _problems(limits, _BUDGET_FIELDS, "budget.")
    if problems:
        raise KeyRequestError(*problems)
    models = body.get("models")
    return KeyRequest(
        team=body.get("team") or team,
        name=body.get("name") or "",
        project=body.get("project"),
        models=None if models is None else tuple(models),
        days=body.get("days"),
        budget=key_budget(
            usd_per_day=limits.get("usdPerDay"),
            usd_per_month=limits.get("usdPerMonth"),
            requests_per_minute=limits.get("requestsPerMinute"),
            tokens_per_minute=limits.get("tokensPerMinute"),
            requests_at_once=limits.get("requestsAtOnce"),
        ),
    )


def rotation(body: Mapping[str, Any]) -> tuple[int | None, bool]:
    """Return the hours of the overlap, and whether the newest secret is replaced.

    Raises KeyRequestError with all wrong fields.
    """
    problems = _problems(body, _ROTATION_FIELDS, "")
    if problems:
        raise KeyRequestError(*problems)
    return body.get("overlapHours"), bool(body.get("again"))


def _problems(values: Mapping[str, Any], fields: Mapping[str, tuple[_Check, str]], prefix: str) -> list[str]:
    """Return what is wrong with the fields of an object. Null counts as missing."""
    problems = []
    for name, value in values.items():
        if name not in fields:
            problems.append(f"{prefix}{name[:80]}: is unknown; known fields are {', '.join(fields)}")
            continue
        check, allowed = fields[name]
        if value is not None and not check(value):
            shown = json.dumps(value)[:80]
            problems.append(f"{prefix}{name}: got {shown}, must be {allowed}")
    return problems
