"""Requests that demand a structure of their answer, and texts that have it.

The simulated engine writes random words. What a real engine writes obeys the constraint of its request: a
JSON Schema or any JSON object (``response_format``), or a call of a tool that must be called
(``tool_choice`` is ``required`` or names one). Dynamo's frontend turns each of them into one constraint on
the tokens (``guided_decoding``), and reads tool calls out of what the engine writes. A request for several
choices (``n``) gets that many. OpenAI's API reference, "Create chat completion", describes these fields, and
``finish_reason``: ``stop`` at a natural end, ``length`` if ``max_tokens`` cut the answer. For a call, the
frontend makes it ``tool_calls``. OpenAI's API did so only for ``required`` (vllm-project/vllm#25054), and
later for a named tool too (#32018).

Nothing but the standard library is imported: the simulated engine reads this file in a Python that only has
Dynamo.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

#: Ends the name under which the simulated engines register what answers such requests.
SUFFIX = ":structured"
#: Variable of a simulated engine with that name. Without it, nothing answers such requests.
NAME_VARIABLE = "STRUCTURED_MODEL_NAME"
#: Variable with the further names of the model, with commas between them.
ALIASES_VARIABLE = "MODEL_ALIASES"
_PATHS = ("/v1/completions", "/v1/chat/completions", "/v1/responses")
#: A field that may demand a structure; other requests need not be read.
_FIELD = re.compile(rb'"(?:n|tool_choice|response_format|format|guided_\w+)"')
#: Characters of a token of English text (OpenAI, "What are tokens and how to count them?").
_TOKEN_CHARACTERS = 4
#: Schemas that contain themselves end here.
_DEEPEST = 20
#: From here on, the simplest of several alternatives is taken.
_DEEP = 6
_SCALARS = ("null", "boolean", "integer", "number", "string")
_WORDS = ("red", "runners", "size", "nine")
#: A value of each format that OpenAI's structured outputs know ("Supported schemas").
_FORMATS: Mapping[str, str] = {
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "date": "2026-01-31",
    "duration": "PT1H",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "uri": "https://example.com/",
}


class NoExampleError(ValueError):
    """No text with the demanded structure can be made; the message is for the caller."""


def demands_structure(path: str, body: bytes) -> bool:
    """Return whether a request demands a structure of its answer, or several answers.

    path: Path of the request, without its query.
    """
    if path not in _PATHS or not _FIELD.search(body):
        return False
    request = _object(body)
    formats = (request.get("response_format"), _field(request.get("text"), "format"))
    choice, count = request.get("tool_choice"), request.get("n")
    return (
        any(_field(each, "type") not in (None, "text") for each in formats)
        or choice == "required"
        or isinstance(choice, dict)
        or (isinstance(count, int) and count > 1)
        or any(name.startswith("guided_") for name in request)
    )


def asks_for(names: Collection[str], body: bytes) -> bool:
    """Return whether a request asks for a model by one of some names."""
    return bool(names) and _object(body).get("model") in names


def for_structured_model(body: bytes) -> bytes:
    """Return a request with the name under which the simulated engines answer with a structure."""
    request = _object(body)
    name = request.get("model")
    return json.dumps({**request, "model": name + SUFFIX}).encode() if isinstance(name, str) else body


def without_suffix(answer: bytes) -> bytes:
    """Return an answer with the name that the caller used."""
    return answer.replace(SUFFIX.encode(), b"")


def without_structured_models(listing: bytes) -> bytes:
    """Return the list of models without the names that only this machine has."""
    listed = _object(listing)
    if not isinstance(listed.get("data"), list):
        return listing
    kept = [each for each in listed["data"] if not str(_field(each, "id")).endswith(SUFFIX)]
    return json.dumps({**listed, "data": kept}).encode()


def structured_tokens(constraint: Mapping[str, Any], seed: int) -> Sequence[str]:
    """Return a text that obeys a constraint, as the texts of its tokens.

    constraint: ``guided_decoding`` of the request that reaches an engine (Dynamo 1.6.1).
    seed: Chooses among the texts. Equal seeds give equal texts.
    Raises NoExampleError if no such text can be made.
    """
    chooser = random.Random(seed)  # noqa: S311 - no secret is made
    schema = constraint.get("json")
    if schema is not None:
        whole = json.loads(schema) if isinstance(schema, str) else schema
        text = json.dumps(_example(whole, whole, chooser, 0))
    elif constraint.get("choice"):
        text = str(chooser.choice(constraint["choice"]))
    else:
        names = ", ".join(sorted(name for name, value in constraint.items() if value is not None))
        raise NoExampleError(
            f"the simulated engine writes JSON and one of several choices, and no text for '{names}'; try "
            "this request with real engines"
        )
    return [text[start : start + _TOKEN_CHARACTERS] for start in range(0, len(text), _TOKEN_CHARACTERS)]


def _object(body: bytes) -> dict[str, Any]:
    """Return a JSON object, empty for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _no_value(of: str) -> NoExampleError:
    return NoExampleError(
        f"the simulated engine makes no value for {of} of a JSON Schema; leave it out, or try this request "
        "with real engines"
    )


def _example(schema: Any, whole: Any, chooser: random.Random, depth: int) -> Any:
    """Return a value of the part of JSON Schema that structured output of OpenAI's API knows."""
    if schema is True or schema == {}:
        return _words(chooser)
    if not isinstance(schema, dict):
        raise _no_value(f"the schema '{json.dumps(schema)}'")
    if depth > _DEEPEST:
        raise _no_value("a part that contains itself")
    if "$ref" in schema:
        return _example(_referenced(str(schema["$ref"]), whole), whole, chooser, depth + 1)
    if "const" in schema or "enum" in schema:
        return chooser.choice(schema.get("enum") or [schema["const"]])
    for name in ("anyOf", "oneOf", "allOf"):
        if choices := schema.get(name):
            if name == "allOf" and len(choices) > 1:
                raise _no_value("'allOf' with several parts")
            return _example(_chosen(choices, chooser, depth), whole, chooser, depth + 1)
    return _of_type(schema, whole, chooser, depth)


def _chosen(choices: Sequence[Any], chooser: random.Random, depth: int) -> Any:
    simple = [each for each in choices if _field(each, "type") in _SCALARS]
    return chooser.choice(simple if simple and depth > _DEEP else choices)


def _of_type(schema: Mapping[str, Any], whole: Any, chooser: random.Random, depth: int) -> Any:
    kind = schema.get("type") or (
        "object" if "properties" in schema else "array" if "items" in schema else None
    )
    if isinstance(kind, list):
        kind = chooser.choice(kind)
    if kind == "object":
        properties = schema.get("properties")
        if properties is None:  # any object
            return {"answer": _words(chooser)} if schema.get("additionalProperties") is not False else {}
        return {
            name: _example(properties[name], whole, chooser, depth + 1)
            for name in properties
            if name in schema.get("required", properties)
        }
    if kind == "array":
        count = max(int(schema.get("minItems", 0)), min(1, int(schema.get("maxItems", 1))))
        return [_example(schema.get("items", True), whole, chooser, depth + 1) for _ in range(count)]
    return _scalar(kind, schema, chooser)


def _scalar(kind: Any, schema: Mapping[str, Any], chooser: random.Random) -> Any:
    if kind == "string":
        if "pattern" in schema:
            raise _no_value("'pattern'")
        if "format" in schema:
            if schema["format"] not in _FORMATS:
                raise _no_value(f"the format '{schema['format']}'")
            return _FORMATS[schema["format"]]
        text = _words(chooser)
        text += "x" * (int(schema.get("minLength", 0)) - len(text))
        return text[: int(schema.get("maxLength", len(text)))]
    if kind == "boolean":
        return chooser.choice((False, True))
    if kind == "null":
        return None
    if kind in ("integer", "number"):
        return _number(schema, chooser)
    raise _no_value(f"the type '{kind}'")


def _number(schema: Mapping[str, Any], chooser: random.Random) -> Any:
    if "multipleOf" in schema:
        raise _no_value("'multipleOf'")
    minimum = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    maximum = schema.get("maximum", schema.get("exclusiveMaximum", minimum + 2) - 1)
    if minimum > maximum:  # no whole number: between two exclusive limits, for example
        raise _no_value(f"a number from {minimum} to {maximum}")
    return chooser.randint(int(-(-minimum // 1)), int(maximum // 1)) if maximum - minimum >= 1 else minimum


def _words(chooser: random.Random) -> str:
    return " ".join(chooser.sample(_WORDS, 2))


def _referenced(reference: str, whole: Any) -> Any:
    found: Any = whole if reference.startswith("#") else None
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = _field(found, step) if step else found
    if found is None:
        raise _no_value(f"the reference '{reference}'")
    return found
