"""Requests that leave the length of the answer open get one; all others pass as they came."""

import json
from typing import Any

import pytest

from inference_local.serving.relay import fitting_length, with_answer_length

_CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/completions", "max_tokens"),
        (_CHAT, "max_completion_tokens"),
        ("/v1/responses", "max_output_tokens"),
    ],
)
@pytest.mark.parametrize("open_", [{}, {"max_tokens": None}], ids=["absent", "null"])
def test_an_open_length_becomes_the_workloads(path: str, field: str, open_: dict[str, Any]) -> None:
    request = {"model": "größer", **open_}
    body = with_answer_length(path, json.dumps(request, ensure_ascii=False).encode(), 200)
    assert json.loads(body) == {**request, field: 200}


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("length", [5, 0, -1, "many"])
def test_a_stated_length_stays_even_a_wrong_one(field: str, length: object) -> None:
    body = json.dumps({"model": "m", field: length}).encode()
    assert with_answer_length(_CHAT, body, 200) == body


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/models", "/", "/v1/completions/"])
def test_other_paths_have_no_length(path: str) -> None:
    assert with_answer_length(path, b'{"model": "m"}', 200) == b'{"model": "m"}'


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b'"text"', b"\xff\xfe", b"[" * 1_000_000],
    ids=["empty", "cut", "list", "text", "binary", "too-deep"],
)
def test_what_is_no_json_object_is_left_for_the_frontend_to_refuse(body: bytes) -> None:
    assert with_answer_length(_CHAT, body, 200) == body


def _refused(**details: object) -> bytes:
    return json.dumps({"message": "Invalid request", "code": 400, "details": details}).encode()


@pytest.mark.parametrize(
    ("refusal", "fitting"),
    [
        (_refused(type="context_length", limit=13312, actual=13504), 8),
        (_refused(type="context_length", limit=13312, actual=13511), 1),
        (_refused(type="context_length", limit=13312, actual=13512), None),
        (_refused(type="context_length", limit=13312, actual=99999), None),
        (_refused(type="other", limit=13312, actual=13504), None),
        (_refused(type="context_length", limit=13312), None),
        (_refused(type="context_length", limit="13312", actual=1), None),
        (b'{"message": "Invalid request"}', None),
        (b'{"details": null}', None),
        (b"[]", None),
        (b"Invalid request", None),
    ],
)
def test_an_added_length_becomes_what_the_context_leaves(refusal: bytes, fitting: int | None) -> None:
    assert fitting_length(refusal, 200) == fitting
