"""Sends a request for an answer in a JSON schema and checks the answer."""

from __future__ import annotations

import json
from typing import Any

import aiohttp

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.answered_request import (
    SHOWN_CHARACTERS,
    ModelUnansweredError,
    answered,
)

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
_PATH = "/v1/chat/completions"


async def structured_output(
    session: aiohttp.ClientSession, base_url: str, model: str, label: str, timeout_seconds: float
) -> CheckResult:
    """Check that an answer follows the JSON schema of its request.

    base_url: Address of the endpoint, without ``/v1``.
    label: Name in the message, such as ``qwen3-8b/main``.
    timeout_seconds: Maximum time of the answer.
    """
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
    try:
        text, ending = await answered(
            session, base_url, _PATH, body, timeout_seconds=timeout_seconds, read=_text_and_ending
        )
    except ModelUnansweredError as error:
        return CheckResult(CHECK, "error", f"{label}: {error}")
    return _judged(label, text, ending)


def _text_and_ending(answer: Any) -> tuple[str, str]:
    """Return the text of an answer, and why it ended."""
    (choice,) = answer["choices"]
    return choice["message"].get("content") or "", choice["finish_reason"]


def _judged(label: str, text: str, ending: str) -> CheckResult:
    """Judge an answer."""
    if _fits(text):
        return CheckResult(CHECK, "ok", f"{label}: the answer follows the JSON schema of its request")
    if ending == "length":
        message = f"{label}: the answer was cut off after {_TOKENS} tokens, so its layout is not known"
        return CheckResult(CHECK, "unknown", message)
    found = text[:SHOWN_CHARACTERS]
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
