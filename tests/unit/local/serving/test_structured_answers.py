"""Requests that demand a structure are told from others, and texts have the structure and the bounds."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from inference_local.serving.structured_answers import (
    SUFFIX,
    NoExampleError,
    demands_structure,
    for_structured_model,
    structured_tokens,
    without_structured_models,
    without_suffix,
)

CHAT = "/v1/chat/completions"
INTENT = {
    "type": "object",
    "properties": {
        "goal": {"type": "string", "enum": ["BUY", "BROWSE"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "items": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/item"}},
        "urgent": {"type": "boolean"},
        "note": {"anyOf": [{"type": "null"}, {"type": "string", "minLength": 30, "maxLength": 40}]},
        "count": {"type": ["integer", "null"], "exclusiveMinimum": 3, "exclusiveMaximum": 9},
        "kind": {"const": "intent"},
        "day": {"type": "string", "format": "date"},
        "seen": {"allOf": [{"type": "string", "format": "date-time"}]},
        "more": {"$ref": "#/$defs/list"},
    },
    "required": [
        *("goal", "confidence", "items", "urgent", "note", "count", "kind", "day", "seen", "more"),
    ],
    "additionalProperties": False,
    "$defs": {
        "item": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "list": {
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}},
            "required": ["next"],
        },
    },
}


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"schema": INTENT}}}),
        (CHAT, {"response_format": {"type": "json_object"}, "stream": True}),
        (CHAT, {"tool_choice": "required"}),
        (CHAT, {"tool_choice": {"type": "function", "function": {"name": "f"}}}),
        (CHAT, {"n": 2}),
        ("/v1/completions", {"n": 2}),
        ("/v1/completions", {"guided_choice": ["a", "b"]}),
        ("/v1/responses", {"text": {"format": {"type": "json_schema", "schema": INTENT}}}),
    ],
)
def test_what_a_mocker_cannot_answer_goes_to_the_other_name(path: str, fields: dict[str, Any]) -> None:
    body = json.dumps({"model": "m", **fields}).encode()
    assert demands_structure(path, body)
    assert json.loads(for_structured_model(body)) == {"model": f"m{SUFFIX}", **fields}


@pytest.mark.parametrize(
    "fields", [{}, {"n": 1}, {"tool_choice": "auto"}, {"response_format": {"type": "text"}}, {"n": None}]
)
def test_other_requests_stay_with_the_mocker(fields: dict[str, Any]) -> None:
    assert not demands_structure(CHAT, json.dumps({"model": "m", **fields}).encode())


@pytest.mark.parametrize("body", [b"", b'["n"]', b'{"n": ', b'{"n": "x", "tool_choice": 3}'])
def test_what_is_no_request_is_left_to_the_frontend(body: bytes) -> None:
    assert not demands_structure(CHAT, body)
    assert for_structured_model(body) == body


def test_callers_see_only_the_name_that_they_use() -> None:
    assert without_suffix(f'data: {{"model":"m{SUFFIX}"}}\n'.encode()) == b'data: {"model":"m"}\n'
    listed = {"object": "list", "data": [{"id": "m"}, {"id": f"m{SUFFIX}"}]}
    shown = json.loads(without_structured_models(json.dumps(listed).encode()))
    assert shown == {"object": "list", "data": [{"id": "m"}]}
    assert without_structured_models(b"not ready") == b"not ready"


def test_every_text_matches_its_schema() -> None:
    goals = set()
    for seed in range(50):
        value = json.loads("".join(structured_tokens({"json": INTENT}, seed)))
        jsonschema.validate(value, INTENT)
        goals.add(value["goal"])
    assert goals == {"BUY", "BROWSE"}
    assert structured_tokens({"json": INTENT}, 1) == structured_tokens({"json": INTENT}, 1)


def test_any_object_is_an_object_and_a_choice_is_one_of_them() -> None:
    assert json.loads("".join(structured_tokens({"json": {"type": "object"}}, 1))) != {}
    assert "".join(structured_tokens({"choice": ["red", "green"], "json": None}, 1)) in ("red", "green")


@pytest.mark.parametrize(
    ("constraint", "named"),
    [
        ({"json": {"type": "string", "pattern": "^[a-f]{9}$"}}, "'pattern'"),
        ({"json": {"type": "string", "format": "idn-email"}}, "idn-email"),
        ({"json": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}}, "itself"),
        ({"json": {"$ref": "https://example.com/schema"}}, "https://example.com/schema"),
        ({"json": {"$ref": "#/$defs/none"}}, "#/[$]defs/none"),
        ({"json": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}}, "a number from 1 to 0"),
        ({"json": {"type": "integer", "multipleOf": 7}}, "'multipleOf'"),
        ({"json": {"allOf": [{}, {}]}}, "'allOf'"),
        ({"json": False}, "false"),
        ({"regex": "a+", "json": None}, "'regex'"),
    ],
)
def test_a_structure_that_has_no_example_here_is_refused(constraint: Any, named: str) -> None:
    with pytest.raises(NoExampleError, match=named):
        structured_tokens(constraint, 1)
