"""Refuses resources of templates that CloudFormation refuses for their properties alone.

CloudFormation checks the properties of a resource against the schema of its type before it asks the service.
`resource_schemas.json` has those schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft7Validator, ValidationError
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_local.emulator.model_constraints import compiled_pattern
from inference_local.emulator.refusals import BEYOND_SCHEMA
from inference_local.emulator.request_refusals import refused_resource, refused_update

_FILE: Final = Path(__file__).with_name("resource_schemas.json")
_BOOLEANS: Final = {"true": True, "false": False}
_NUMBERS: Final = {"integer": int, "number": float}


def apply() -> None:
    """Check the properties of every resource type, whoever handles it."""
    for resource_type in list(_RESOURCE_HANDLERS):
        _RESOURCE_HANDLERS[resource_type] = _checked(resource_type, _RESOURCE_HANDLERS[resource_type])


def demand_accepted(resource_type: str, logical_id: str, properties: Mapping[str, Any]) -> None:
    """Raise AwsApiError if AWS refuses the properties of a resource."""
    schema = _schemas().get(resource_type)
    if schema:
        found = list(_violations(schema, properties))
        if found:
            raise BEYOND_SCHEMA.error(resource=logical_id, found="\n".join(found))
    if error := refused_resource(resource_type, properties):
        raise error


def _checked(resource_type: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    checked = dict(plain)
    if create := plain.get("create"):

        def checked_create(logical_id: str, properties: Any, stack: str) -> Any:
            demand_accepted(resource_type, logical_id, properties)
            return create(logical_id, properties, stack)

        checked["create"] = checked_create
    if update := plain.get("update"):

        def checked_update(name: str, old: Any, properties: Any, *others: str) -> Any:
            demand_accepted(resource_type, others[1] if len(others) > 1 else name, properties)
            if error := refused_update(resource_type, old, properties):
                raise error
            return update(name, old, properties, *others)

        checked["update"] = checked_update
    return checked


def _violations(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> Iterator[str]:
    known = {key: value for key, value in properties.items() if value is not None}
    typed = _typed(known, schema, schema)
    for error in sorted(_validator_of(schema).iter_errors(typed), key=lambda each: str(each.path)):
        yield f"#{''.join(f'/{part}' for part in error.path)}: {_words(error)}"


def _words(error: ValidationError) -> str:
    """Return CloudFormation's words."""
    instance: Any = error.instance
    schema: Any = error.schema
    bound: Any = error.validator_value
    match error.validator:
        case "maxLength" | "minLength" | "maxItems" | "minItems":
            return f"expected {error.validator}: {bound}, actual: {len(instance)}"
        case "required":
            return f"required key [{next(each for each in bound if each not in instance)}] not found"
        case "additionalProperties":
            known = schema.get("properties", {})
            return f"extraneous key [{next(each for each in instance if each not in known)}] is not permitted"
        case "enum":
            return f"{instance} is not a valid enum value"
    return f"failed validation constraint for keyword [{error.validator}]: {error.message[:200]}"


def _typed(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Return a value with the types of a schema: templates may have texts in the place of numbers."""
    if reference := schema.get("$ref"):
        schema = root["definitions"].get(str(reference).removeprefix("#/definitions/"), {})
    kinds = schema.get("type", ())
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    match value:
        case dict():
            known = schema.get("properties", {})
            return {
                key: _typed(each, known.get(key, {}), root) for key, each in value.items() if each is not None
            }
        case list():
            # ministack takes an empty parameter for a list with an empty text (cdk bootstrap has one).
            return [_typed(each, schema.get("items") or {}, root) for each in value if each not in ("", None)]
        case str() if "string" not in kinds:
            return _number_or_truth(value, kinds)
        case bool() if kinds and "boolean" not in kinds and "string" in kinds:
            return str(value).lower()
        case int() | float() if (
            not isinstance(value, bool) and "string" in kinds and not kinds & _NUMBERS.keys()
        ):
            return str(value)
    return value


def _number_or_truth(text: str, kinds: set[str]) -> Any:
    if "boolean" in kinds and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    for kind in kinds & _NUMBERS.keys():
        try:
            return _NUMBERS[kind](text)
        except ValueError:
            continue
    return text


def _validator_of(schema: Mapping[str, Any]) -> Any:
    return _validators().setdefault(id(schema), Draft7Validator(schema))


@cache
def _validators() -> dict[int, Any]:
    return {}


@cache
def _schemas() -> dict[str, Any]:
    return {name: _in_python(each) for name, each in json.loads(_FILE.read_text("utf-8"))["types"].items()}


def _in_python(schema: Any) -> Any:
    """Return a schema with its patterns, which are Java's, as Python writes them."""
    if isinstance(schema, list):
        return [_in_python(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    read = {key: _in_python(value) for key, value in schema.items()}
    if isinstance(text := read.get("pattern"), str):
        found = compiled_pattern(text)
        read["pattern"] = found.pattern if found else ""
    if isinstance(named := read.get("patternProperties"), dict):
        patterns = {compiled_pattern(text): each for text, each in named.items()}
        read["patternProperties"] = {found.pattern if found else "": each for found, each in patterns.items()}
    return read
