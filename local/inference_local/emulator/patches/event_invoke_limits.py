"""Refuses the repeats of asynchronous calls that Lambda refuses. ministack takes any number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ministack.core.responses import error_response_json
from ministack.services import lambda_svc

from inference_local.emulator.refusals import EVENT_INVOKE_LIMIT

#: Least and greatest value of each setting.
_LIMITS: Mapping[str, tuple[int, int]] = {
    "MaximumEventAgeInSeconds": (60, 21600),
    "MaximumRetryAttempts": (0, 2),
}
_PLAIN_PUT = lambda_svc._put_event_invoke_config


def _put(func_name: str, qualifier: str | None, data: Mapping[str, Any]) -> Any:
    for name, (minimum, maximum) in _LIMITS.items():
        value = int(data.get(name, minimum))
        if not minimum <= value <= maximum:
            bound = (
                f"greater than or equal to {minimum}"
                if value < minimum
                else f"less than or equal to {maximum}"
            )
            error = EVENT_INVOKE_LIMIT.error(value=str(value), name=name[0].lower() + name[1:], bound=bound)
            return error_response_json(error.code, str(error), 400)
    return _PLAIN_PUT(func_name, qualifier, data)


def apply() -> None:
    """Apply the patch."""
    lambda_svc._put_event_invoke_config = _put
