"""Describes the types: the keys of each section with their kinds, descriptions and defaults."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from inference_blueprints.spec import formats
from inference_blueprints.spec.section import LATER
from inference_blueprints.spec.types import Blueprint, Choice, Section
from inference_blueprints.spec.wording import Path
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a section."""

    name: str
    """Name in YAML."""
    section: type[Section]
    """The section that has the key."""
    field: FieldInfo
    """Pydantic's field."""
    attribute: str
    """Name in Python."""

    @property
    def description(self) -> str:
        """The docstring of the attribute."""
        return descriptions(self.section)[self.attribute]

    @property
    def required(self) -> bool:
        """Whether the key must be in a file."""
        return self.field.is_required()

    @property
    def child(self) -> type[Section] | None:
        """The section in the key, or in each item of the key's list."""
        kinds = _members(_innermost(self.field.annotation))
        return next((kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, Section)), None)

    @property
    def has_plain_form(self) -> bool:
        """Whether the key may hold a plain value instead of its section."""
        return self.child is not None and len(_members(_innermost(self.field.annotation))) > 1

    @property
    def is_list(self) -> bool:
        """Whether the key holds a list."""
        return get_origin(_without_none(self.field.annotation)) is list

    @property
    def literals(self) -> tuple[str, ...]:
        """The allowed words, if the type lists them."""
        kind = _without_none(self.field.annotation)
        return get_args(kind) if get_origin(kind) is Literal else ()


@cache
def keys(section: type[Section]) -> Mapping[str, Key]:
    """Return the keys of a section by their name in YAML, in the order of the type."""
    return {
        field.alias or name: Key(field.alias or name, section, field, name)
        for name, field in section.model_fields.items()
    }


def section_at(path: Path) -> type[Section] | None:
    """Return the section at a path of the document; None if there is none."""
    section: type[Section] | None = Blueprint
    for part in path:
        if isinstance(part, int):
            continue
        key = keys(section).get(part) if section else None
        section = key.child if key else None
    return section


def key_at(path: Path) -> Key | None:
    """Return the key at the end of a path without its list indexes; None if the types do not have it."""
    names = [part for part in path if isinstance(part, str)]
    section = section_at(tuple(names[:-1])) if names else None
    return keys(section).get(names[-1]) if section else None


def places_of(name: str) -> list[str]:
    """Return where the types have a key of this name, such as ``spec.models[].weights``."""
    return [path for path, section, _ in walk() if name in keys(section)]


def walk(
    section: type[Section] = Blueprint, path: str = "", key: Key | None = None
) -> Iterator[tuple[str, type[Section], Key | None]]:
    """Yield every section below one, itself first, with its path and the key that holds it."""
    yield path, section, key
    for name, child in keys(section).items():
        if child.child:
            below = f"{path}.{name}" if path else name
            yield from walk(child.child, f"{below}[]" if child.is_list else below, child)


@cache
def descriptions(section: type[Section]) -> Mapping[str, str]:
    """Return the text below each attribute of a section and of those that it extends, on one line.

    Read from the source on demand: if pydantic read it, importing the types would take twice as long.
    """
    return {
        statement.target.id: " ".join(inspect.cleandoc(words.value.value).split())
        for each in reversed(section.__mro__)
        if issubclass(each, Section)
        for node in _module(each.__module__).body
        if isinstance(node, ast.ClassDef) and node.name == each.__name__
        for statement, words in zip(node.body, node.body[1:], strict=False)
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and isinstance(words, ast.Expr)
        and isinstance(words.value, ast.Constant)
        and isinstance(words.value.value, str)
    }


def is_choice(section: type[Section]) -> bool:
    """Return whether exactly one key of the section must be given."""
    return issubclass(section, Choice)


@cache
def _module(name: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[name]))


def _without_none(annotation: Any) -> Any:
    """Return ``X`` of ``X | None``."""
    members = [member for member in get_args(annotation) if member is not type(None)]
    is_optional = _is_union(annotation) and len(members) == 1
    return members[0] if is_optional else annotation


def _members(annotation: Any) -> list[Any]:
    """Return the types of a union of tagged types, or the type itself."""
    members = get_args(annotation) if _is_union(annotation) else (annotation,)
    return [get_args(each)[0] if get_origin(each) is Annotated else each for each in members]


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) is Union or type(annotation).__name__ == "UnionType"


def _innermost(annotation: Any) -> Any:
    """Return the item's type of a list, the type itself of anything else."""
    kind = _without_none(annotation)
    return get_args(kind)[0] if get_origin(kind) is list else kind


# The blueprint's JSON Schema, generated from the types for editors and other readers.
#
# It holds what the types hold: keys, kinds, forms and limits. What the rules check is not in it.


class _WholeSchema(GenerateJsonSchema):
    """Goes into the sections that are described later (`Section.__get_pydantic_core_schema__`)."""

    def generate_inner(self, schema: Any) -> dict[str, Any]:
        """Return the JSON Schema of a section or of a part of one."""
        return super().generate_inner(_described(schema))

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return whether a key gets a title from its name: a section has one of its own."""
        return super().field_title_should_be_set(_described(schema))


def _described(schema: Any) -> Any:
    """Return pydantic's description of a section that is described later; another schema as it is."""
    section = schema.get("metadata", {}).get(LATER)
    if section is None:
        return schema
    section.model_rebuild()
    return section.__pydantic_core_schema__


_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a blueprint."""
    document = Blueprint.model_json_schema(by_alias=True, schema_generator=_WholeSchema)
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
