"""Renders dataclasses as chart values with camelCase keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from pydantic.alias_generators import to_camel

#: Key of a field's metadata: the name of the field after which it is rendered, or None for the first place.
#: Other fields are rendered in the order of their declaration.
BEHIND = "behind"


def rendered_values(value: object) -> Any:
    """Return a value as JSON types, with camelCase keys for the fields of dataclasses.

    A field with its default value or None is left out: the CDK drops null values, and charts test whether a
    key is present.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {
            to_camel(field.name): rendered_values(content)
            for field in ordered_fields(type(value))
            if (content := getattr(value, field.name)) is not None
            and (content != field.default or field.default is MISSING)
        }
    if isinstance(value, Mapping):
        return {key: rendered_values(value[key]) for key in sorted(value)}
    if isinstance(value, tuple | list):
        return [rendered_values(each) for each in value]
    if isinstance(value, str | int | float):
        return value
    raise TypeError(f"got {type(value).__name__}, which a chart value cannot have; add a type for it here")


def ordered_fields(values: type) -> list[Field[Any]]:
    """Return the fields of a dataclass in the order in which they are rendered."""
    ordered: list[Field[Any]] = []
    for field in fields(values):
        names = [None, *(each.name for each in ordered)]
        place = names.index(field.metadata[BEHIND]) if BEHIND in field.metadata else len(ordered)
        ordered.insert(place, field)
    return ordered
