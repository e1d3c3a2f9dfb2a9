"""The blueprint's JSON Schema, generated from the types for editors and other readers.

It holds what the types hold: keys, kinds, forms and limits. What the rules check is not in it.
"""

from __future__ import annotations

import json
from typing import Any

from inference_blueprints.spec import formats
from inference_blueprints.spec.structure import Key, is_choice, keys, walk
from inference_blueprints.spec.types import Blueprint, Section

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a blueprint."""
    document = Blueprint.model_json_schema(by_alias=True)
    for section in {section for _, section, _ in walk()}:
        _complete(document["$defs"].get(section.__name__, document), section)
    return {"$schema": _DIALECT, **document}


def schema_text() -> str:
    """Return the schema as it is shipped: the same bytes from the same types."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _complete(definition: dict[str, Any], section: type[Section]) -> None:
    """Add to a section what pydantic does not know of it."""
    properties = definition.setdefault("properties", {})
    for key in keys(section).values():
        properties[key.name] = _property(properties[key.name], key)
    if is_choice(section):
        definition |= {"minProperties": 1, "maxProperties": 1}


def _property(schema: dict[str, Any], key: Key) -> dict[str, Any]:
    """Return a key's schema with its description, and without null: YAML leaves a key out instead."""
    members = [member for member in schema.get("anyOf", ()) if member != {"type": "null"}]
    if len(members) == 1:
        schema = {
            name: value for name, value in schema.items() if name not in ("anyOf", "default")
        } | members[0]
    for part in (schema, schema.get("items", {}), _values(schema)):
        if "pattern" in part:
            part["patternErrorMessage"] = f"expected {formats.DESCRIPTIONS[part['pattern']]}"
    return {**schema, "title": key.name, "description": key.description}


def _values(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a mapping's values, as far as it says something."""
    values = schema.get("additionalProperties")
    return values if isinstance(values, dict) else {}
