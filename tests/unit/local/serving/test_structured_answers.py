"""Simulated answers get the structure that their requests demand, and nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from inference_local.serving.structured_answers import wanted_schema, with_structure

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
    },
    "required": ["goal", "confidence", "items", "urgent", "note", "count", "kind"],
    "additionalProperties": False,
    "$defs": {
        "item": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}


def request(**fields: Any) -> bytes:
    structured = {"type": "json_schema", "json_schema": {"name": "a", "schema": INTENT}}
    return json.dumps({"model": "m", "messages": [], "response_format": structured, **fields}).encode()


def answer(text: str = "bado bade") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
    return json.dumps({"choices": [choice], "usage": {"completion_tokens": 8}}).encode()


def test_the_schema_of_a_whole_chat_is_wanted_and_no_other() -> None:
    assert wanted_schema(CHAT, request()) == INTENT
    assert wanted_schema(CHAT, request(stream=True)) is None
    assert wanted_schema("/v1/completions", request()) is None
    for body in (b'{"a": "json_schema"}', b'["json_schema"]', b'"json_schema', request(response_format=None)):
        assert wanted_schema(CHAT, body) is None


def test_every_answer_matches_the_schema_and_keeps_its_tokens() -> None:
    goals = set()
    for number in range(50):
        document = json.loads(with_structure(answer(f"bado {number}"), INTENT))
        [choice] = document["choices"]
        value = json.loads(choice["message"]["content"])
        jsonschema.validate(value, INTENT)
        goals.add(value["goal"])
        assert (choice["finish_reason"], document["usage"]) == ("stop", {"completion_tokens": 8})
    assert goals == {"BUY", "BROWSE"}
    assert with_structure(answer(), INTENT) == with_structure(answer(), INTENT)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[a-f]{9}$"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"$ref": "https://example.com/schema"},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {},
    ],
)
def test_a_schema_that_has_no_example_here_leaves_the_answer_as_it_is(schema: Any) -> None:
    assert with_structure(answer(), schema) == answer()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"choices": 1}', b'{"error": {}}', b"\x1f\x8b\x00"])
def test_what_is_no_chat_completion_stays(body: bytes) -> None:
    assert with_structure(body, INTENT) == body
