"""Gives errors of frontends and engines the form and the codes that OpenAI's clients know.

Forms that come in: ``{"message", "type", "code", "details"}`` of Dynamo's frontend (``ErrorMessage`` in
``lib/llm/src/http/service/openai.rs`` of ai-dynamo 1.6.1) and of SGLang, ``{"error": {…}}`` of vLLM with a
number as its code, and plain text of Envoy and llm-d's endpoint picker. Codes that go out:
https://platform.openai.com/docs/guides/error-codes
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from request_filter.http_head import ResponseHead
from request_filter.refused_request import RefusedRequestError
from request_filter.request_body import BodyReader

#: Larger errors are passed on as they are.
MOST_BYTES: Final = 64 * 1024
_FIRST_ERROR: Final = 400
_FIRST_SERVER_ERROR: Final = 500
#: Anthropic's clients expect another form.
_OTHER_FORMS: Final = ("/v1/messages",)
#: Dynamo and vLLM; SGLang; llama.cpp.
_TOO_LONG: Final = re.compile(
    r"maximum context length|longer than the model's context length|exceeds the available context size"
)
_OF_STATUS: Final[Mapping[int, str]] = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
#: What to do.
_REMEDIES: Final[Mapping[str, str]] = {
    "context_length_exceeded": "Shorten the prompt, or ask for fewer tokens.",
    "model_not_found": "GET /v1/models lists the models.",
}
_LONGEST_MESSAGE: Final = 4000


def has_other_form(head: ResponseHead, method: str, path: str) -> bool:
    """Return whether an answer is an error whose form may be another than OpenAI's."""
    return (
        head.status >= _FIRST_ERROR
        and method != "HEAD"
        and path.startswith("/v1/")
        and not path.startswith(_OTHER_FORMS)
        and (head.length is None or head.length <= MOST_BYTES)
        and not any(name == "content-encoding" for name, _ in head.headers)
    )


def rewritten(head: ResponseHead, raw: bytes) -> tuple[ResponseHead, bytes] | None:
    """Return an error in OpenAI's form. None if its body cannot be read.

    raw: The body as it came, with the sizes of its chunks.
    """
    content = raw
    if head.chunked:
        reader = BodyReader(None, MOST_BYTES)
        try:
            if not reader.take(bytearray(raw)):
                return None
        except RefusedRequestError:
            return None
        content = reader.content()
    body = openai_error(head.status, content)
    headers = (*(each for each in head.headers if each[0] != "content-type"), _JSON)
    return replace(head, headers=headers, length=len(body), chunked=False), body


def openai_error(status: int, content: bytes) -> bytes:
    """Return the body of an error in OpenAI's form.

    content: The body in any form.
    """
    text = content.decode("utf-8", "replace")
    found = _found(text)
    message = str(found.get("message") or text or f"status {status}")[:_LONGEST_MESSAGE]
    code = found.get("code")
    if not isinstance(code, str):
        code = _code(status, message, found.get("details"))
    remedy = _REMEDIES.get(code or "")
    if remedy and remedy not in message:
        message = f"{message.rstrip('. ')}. {remedy}"
    kind = "invalid_request_error" if status < _FIRST_SERVER_ERROR else "server_error"
    error = {"message": message, "type": kind, "param": _param(found, code), "code": code}
    return json.dumps({"error": error}).encode()


def _found(text: str) -> Mapping[str, Any]:
    """Return the error in a body. Empty if it is no document that says one."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(document, dict):
        return {}
    for name in ("error", "detail"):
        inner = document.get(name)
        if isinstance(inner, dict):
            return inner
        if inner:
            return {"message": inner if isinstance(inner, str) else json.dumps(inner)}
    return document


def _code(status: int, message: str, details: Any) -> str | None:
    says_so = isinstance(details, dict) and details.get("type") == "context_length"
    if status < _FIRST_SERVER_ERROR and (says_so or _TOO_LONG.search(message)):
        return "context_length_exceeded"
    if status == 404 and "model" in message.lower():  # noqa: PLR2004 -- the status of what is missing
        return "model_not_found"
    return _OF_STATUS.get(status)


def _param(found: Mapping[str, Any], code: str | None) -> str | None:
    param = found.get("param")
    if isinstance(param, str):
        return param
    return "model" if code == "model_not_found" else None


_JSON: Final = ("content-type", "application/json")
