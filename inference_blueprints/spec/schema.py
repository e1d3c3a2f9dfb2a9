"""The blueprint's JSON Schema, generated from the types for editors and other readers."""

from __future__ import annotations

import json
from typing import Any

from inference_blueprints.spec.types import Blueprint


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a blueprint."""
    return Blueprint.model_json_schema(by_alias=True)


def schema_text() -> str:
    """Return the schema as it is shipped: the same bytes from the same types."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
