"""Errors of frontends and engines, in the form and with the codes that OpenAI's clients know."""

from __future__ import annotations

import json

import pytest
from request_filter.error_form import MOST_BYTES, has_other_form, openai_error, rewritten
from request_filter.http_head import ResponseHead

_DYNAMO = (
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens. "
    "Please reduce the length of the messages."
)
_SGLANG = "The input (5000 tokens) is longer than the model's context length (4096 tokens)."
_LLAMA = "the request exceeds the available context size. try increasing it"
_REMEDY = "Shorten the prompt, or ask for fewer tokens."


@pytest.mark.parametrize(
    ("status", "body", "code", "param"),
    [
        (400, {"message": _DYNAMO, "type": "Bad Request", "code": 400}, "context_length_exceeded", None),
        (400, {"error": {"message": _DYNAMO, "code": 400}}, "context_length_exceeded", None),
        (400, {"message": "no", "details": {"type": "context_length"}}, "context_length_exceeded", None),
        (400, {"object": "error", "message": _SGLANG, "code": 400}, "context_length_exceeded", None),
        (400, {"error": {"message": _LLAMA, "code": 400}}, "context_length_exceeded", None),
        (404, {"message": "Model not found", "type": "Not Found", "code": 404}, "model_not_found", "model"),
        (404, {"error": {"message": "The model `a` does not exist."}}, "model_not_found", "model"),
        (429, {"error": {"message": "slow down", "code": 429}}, "rate_limit_exceeded", None),
        (400, {"error": {"message": "bad", "param": "n", "code": "bad_n"}}, "bad_n", "n"),
        (422, {"detail": [{"loc": ["body", "n"], "msg": "wrong"}]}, None, None),
        (529, {"message": "too busy", "type": "Overloaded", "code": 529}, None, None),
    ],
)
def test_each_form_becomes_openais(
    status: int, body: dict[str, object], code: str | None, param: str | None
) -> None:
    error = json.loads(openai_error(status, json.dumps(body).encode()))["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert (error["code"], error["param"]) == (code, param)
    assert error["type"] == ("server_error" if status >= 500 else "invalid_request_error")
    assert (_REMEDY in error["message"]) is (code == "context_length_exceeded")


@pytest.mark.parametrize("body", [b"upstream connect error", b"[1]", b'"text"', b"\xff", b"{", b""])
def test_what_is_no_document_is_the_message(body: bytes) -> None:
    error = json.loads(openai_error(503, body))["error"]
    assert error["message"] == (body.decode("utf-8", "replace") or "status 503")


def test_only_errors_of_openais_paths_are_changed() -> None:
    def changed(
        status: int, path: str = "/v1/chat/completions", method: str = "POST", **fields: object
    ) -> bool:
        values = {"headers": (), "length": 10, "chunked": False, **fields}
        return has_other_form(ResponseHead(status, "", **values), method, path)  # type: ignore[arg-type]

    assert changed(400)
    assert changed(503, length=None, chunked=True)
    assert not changed(200)
    assert not changed(400, "/v1/messages")
    assert not changed(503, "/health")
    assert not changed(400, method="HEAD")
    assert not changed(400, length=MOST_BYTES + 1)
    assert not changed(400, headers=(("content-encoding", "gzip"),))


def test_the_head_fits_the_new_body() -> None:
    head = ResponseHead(404, "Not Found", (("content-type", "text/plain"), ("a", "b")), None, chunked=True)
    found = rewritten(head, b"5\r\nmodel\r\n0\r\n\r\n")
    assert found is not None
    new, body = found
    assert (new.length, new.chunked, new.headers) == (
        len(body),
        False,
        (("a", "b"), ("content-type", "application/json")),
    )
    assert json.loads(body)["error"]["code"] == "model_not_found"
    assert rewritten(head, b"5\r\nmod") is None
    assert rewritten(head, b"x\r\n") is None
