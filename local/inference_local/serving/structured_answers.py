"""Gives simulated answers the structure that a request demands.

The simulated engine answers with random words. A real engine's answer to a request with a JSON Schema
(``response_format`` of OpenAI's chat completions) matches the schema. Here, the text of such an answer
becomes a random value of the schema, so that the programs around it can be tried. Its time and its count of
tokens stay those of the simulated engine. Streams and requests without a schema are unchanged.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

_PATH = "/v1/chat/completions"
_MARK = b'"json_schema"'
#: Schemas that contain themselves end here.
_DEEPEST = 20
_WORDS = ("red", "runners", "size", "nine")


class _NoExampleError(Exception):
    """No value of the schema could be made."""


def wanted_schema(path: str, body: bytes) -> Mapping[str, Any] | None:
    """Return the JSON Schema that a request demands of a whole answer, or None.

    path: Path of the request, without its query.
    """
    if path != _PATH or _MARK not in body:
        return None
    try:
        request = json.loads(body)
        schema = request["response_format"]["json_schema"]["schema"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    return schema if isinstance(schema, dict) and not request.get("stream") else None


def with_structure(answer: bytes, schema: Mapping[str, Any]) -> bytes:
    """Return an answer whose choices are values of a schema.

    answer: Body of the frontend's response.
    Returns: The same answer if no value of the schema can be made, or it is no chat completion.
    """
    try:
        document = json.loads(answer)
        for choice in document["choices"]:
            # The engine's random words choose the value, so equal runs give equal values.
            chooser = random.Random(str(choice["message"]["content"]))  # noqa: S311 - no secret is made
            choice["message"]["content"] = json.dumps(_example(schema, schema, chooser, 0))
            choice["finish_reason"] = "stop"
    except (ValueError, KeyError, TypeError, RecursionError, _NoExampleError):
        return answer
    return json.dumps(document).encode()


def _example(schema: Any, whole: Mapping[str, Any], chooser: random.Random, depth: int) -> Any:
    """Return a value of the part of JSON Schema that structured output of OpenAI's API knows."""
    if depth > _DEEPEST or not isinstance(schema, dict):
        raise _NoExampleError
    if "$ref" in schema:
        return _example(_referenced(str(schema["$ref"]), whole), whole, chooser, depth + 1)
    if "const" in schema or "enum" in schema:
        return chooser.choice(schema.get("enum") or [schema["const"]])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _example(chooser.choice(choices), whole, chooser, depth + 1)
    return _of_type(schema, whole, chooser, depth)


def _of_type(schema: Mapping[str, Any], whole: Mapping[str, Any], chooser: random.Random, depth: int) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = chooser.choice(kind)
    if kind == "object":
        properties = schema.get("properties", {})
        return {
            name: _example(properties[name], whole, chooser, depth + 1)
            for name in properties
            if name in schema.get("required", properties)
        }
    if kind == "array":
        count = max(int(schema.get("minItems", 0)), min(1, int(schema.get("maxItems", 1))))
        return [_example(schema["items"], whole, chooser, depth + 1) for _ in range(count)]
    return _scalar(kind, schema, chooser)


def _scalar(kind: Any, schema: Mapping[str, Any], chooser: random.Random) -> Any:
    if kind == "string" and "pattern" not in schema and "format" not in schema:
        text = " ".join(chooser.sample(_WORDS, 2))
        text += "x" * (int(schema.get("minLength", 0)) - len(text))
        return text[: int(schema.get("maxLength", len(text)))]
    if kind == "boolean":
        return chooser.choice((False, True))
    if kind == "null":
        return None
    if kind in ("integer", "number") and "multipleOf" not in schema:
        minimum = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        maximum = schema.get("maximum", schema.get("exclusiveMaximum", minimum + 2) - 1)
        if minimum > maximum:  # no whole number: between two exclusive limits, for example
            raise _NoExampleError
        return (
            chooser.randint(int(-(-minimum // 1)), int(maximum // 1)) if maximum - minimum >= 1 else minimum
        )
    raise _NoExampleError


def _referenced(reference: str, whole: Mapping[str, Any]) -> Any:
    if not reference.startswith("#"):
        raise _NoExampleError
    found: Any = whole
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = found[step] if step else found
    return found
