"""Sends a request for an answer in a JSON schema and checks the answer."""

from __future__ import annotations

import json
from typing import Any

import aiohttp

from inference_blueprints.deployment.check_results import CheckResult
from inference_blueprints.measurement.completions.completion_client import TIMED_OUT, connection_failure

CHECK = "structured output"
_CHOICES, _SWITCH = ("lake", "river"), "deep"
#: Values that no engine can draw out, so that an answer is short whatever the model.
_SCHEMA = {
    "type": "object",
    "properties": {"kind": {"type": "string", "enum": [*_CHOICES]}, _SWITCH: {"type": "boolean"}},
    "required": ["kind", _SWITCH],
    "additionalProperties": False,
}
#: Enough for a model that reasons before it answers.
_TOKENS = 1024
_HTTP_OK = 200
_SHOWN_CHARACTERS = 200


async def structured_output(
    session: aiohttp.ClientSession, base_url: str, model: str, label: str, timeout_seconds: float
) -> CheckResult:
    """Check that an answer follows the JSON schema of its request.

    Parameters
    ----------
    base_url
        Address of the endpoint, without ``/v1``.
    label
        Name in the message, such as ``qwen3-8b/main``.
    timeout_seconds
        Maximum time of the answer.
    """
    try:
        text, ending = await _asked(session, f"{base_url}/v1/chat/completions", model, timeout_seconds)
    except TimeoutError:
        problem = f"{TIMED_OUT} ({timeout_seconds:g} s)"
    except aiohttp.ClientConnectorError as error:
        problem = connection_failure(error)
    except aiohttp.ClientResponseError as error:
        problem = f"HTTP {error.status} ({error.message})"
    except (aiohttp.ClientError, ConnectionError, ValueError, LookupError, TypeError) as error:
        problem = f"the answer is not one of /v1/chat/completions: {error}"
    else:
        return _judged(label, text, ending)
    return CheckResult(CHECK, "error", f"{label}: {problem}")


async def _asked(
    session: aiohttp.ClientSession, url: str, model: str, timeout_seconds: float
) -> tuple[str, str]:
    """Return an answer and why it ended."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Name a kind of water, and whether it is deep, as JSON."}],
        "max_tokens": _TOKENS,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "water", "schema": _SCHEMA, "strict": True},
        },
        "chat_template_kwargs": {"enable_thinking": False},
    }
    timeout = aiohttp.ClientTimeout(total=timeout_seconds)
    async with session.post(url, json=body, timeout=timeout) as response:
        if response.status != _HTTP_OK:
            detail = (await response.text())[:_SHOWN_CHARACTERS]
            raise aiohttp.ClientResponseError(
                response.request_info, response.history, status=response.status, message=detail
            )
        (choice,) = (await response.json())["choices"]
        return choice["message"].get("content") or "", choice["finish_reason"]


def _judged(label: str, text: str, ending: str) -> CheckResult:
    """Judge an answer."""
    if _fits(text):
        return CheckResult(CHECK, "ok", f"{label}: the answer follows the JSON schema of its request")
    if ending == "length":
        message = f"{label}: the answer was cut off after {_TOKENS} tokens, so its layout is not known"
        return CheckResult(CHECK, "unknown", message)
    found = text[:_SHOWN_CHARACTERS]
    message = f"{label}: the answer does not follow the JSON schema of its request: {found!r}"
    return CheckResult(CHECK, "error", message)


def _fits(text: str) -> bool:
    """Whether a text is JSON of the schema."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return False
    return (
        isinstance(value, dict)
        and value.keys() == {"kind", _SWITCH}
        and value["kind"] in _CHOICES
        and isinstance(value[_SWITCH], bool)
    )
