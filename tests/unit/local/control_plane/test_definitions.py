"""Definitions that are generated from the strict schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from inference_local.control_plane import definitions

#: Keywords of a structural schema that the generated ones may use
#: (Kubernetes documentation, "Custom Resources", "Specifying a structural schema").
STRUCTURAL = {
    "additionalProperties",
    "enum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-preserve-unknown-fields",
}


def _schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for child in schema.get("properties", {}).values():
        yield from _schemas(child)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from _schemas(schema[key])


@pytest.mark.parametrize(("name", "plural"), definitions.GENERATED_KINDS.items())
def test_generated_definitions_are_structural(name: str, plural: str) -> None:
    definition = definitions._generated(name, plural)
    group, version, kind = name.split("_")

    assert definition["metadata"]["name"] == f"{plural}.{group}"
    assert definition["spec"]["names"]["kind"] == kind
    (only,) = definition["spec"]["versions"]
    assert only["name"] == version
    for schema in _schemas(only["schema"]["openAPIV3Schema"]):
        assert set(schema) <= STRUCTURAL
        assert "type" in schema or "x-kubernetes-int-or-string" in schema


def test_references_are_put_in_place_and_constants_are_enumerations() -> None:
    whole = {"$defs": {"port": {"type": ["integer", "string"]}}}
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"kind": {"const": "A"}, "port": {"$ref": "#/$defs/port"}, "any": {"type": "object"}},
    }

    assert definitions._structural(schema, whole) == {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["A"]},
            "port": {"x-kubernetes-int-or-string": True},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
