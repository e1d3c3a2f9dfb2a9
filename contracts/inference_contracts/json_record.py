"""Converts data classes to and from JSON: the only codec of batch's documents, messages and items.

A document that the stack writes for the functions has camelCase keys, as the blueprint. What the functions
write themselves has the names of the fields.

pydantic and msgspec are compiled for one Python version and one processor. The functions' code is copied from
the machine that deploys, which may have others, and no package registry is used. Importing them would also
slow a cold start: 0.13 s of processor time for msgspec and 0.3 s for pydantic, compared with 0.02 s for
`json` (measured).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Self, Union, get_args, get_origin, get_type_hints

_Converter = Callable[[Any], Any]
#: Metadata of a field that a document leaves out while it has its default.
OPTIONAL: Final[Mapping[str, bool]] = {"optional": True}


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """A data class whose fields are numbers, texts, mappings, records, tuples of these, or None."""

    def to_values(self) -> dict[str, Any]:
        """Return the fields by name, with nested records as dictionaries."""
        return asdict(self)

    def to_json(self) -> str:
        """Return the shortest JSON document, in ASCII."""
        return json.dumps(self.to_values(), separators=(",", ":"))

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Build the record from the result of `to_values`, also after a round trip through JSON or DynamoDB.

        Raises TypeError if a field is unknown or missing.
        """
        kind: type = cls
        read = {name: convert(values[name]) for name, convert in _converters(kind).items() if name in values}
        return cls(**{**values, **read})

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a document. Raises ValueError if it is not JSON, and TypeError if it is not such a record."""
        return cls.from_values(json.loads(text))

    def to_document(self) -> dict[str, Any]:
        """Return the fields under camelCase keys, without optional ones that have their default."""
        found = {each.name: (getattr(self, each.name), each) for each in fields(self)}
        return {
            re.sub(r"_(.)", lambda match: match[1].upper(), name): _document(value)
            for name, (value, each) in found.items()
            if not (each.metadata.get("optional") and value == each.default)
        }

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """Build the record from the result of `to_document`. Raises TypeError as `from_values` does."""
        return cls.from_values(_snake_case(document))


def _document(value: Any) -> Any:
    if isinstance(value, JsonRecord):
        return value.to_document()
    return [_document(each) for each in value] if isinstance(value, tuple | list) else value


def _snake_case(value: Any) -> Any:
    """Convert the keys of a document from camelCase to snake_case."""
    if isinstance(value, dict):
        return {
            re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", key): _snake_case(each)
            for key, each in value.items()
        }
    return [_snake_case(each) for each in value] if isinstance(value, list) else value


@cache
def _converters(kind: type) -> Mapping[str, _Converter]:
    """Return converters for the fields whose types JSON does not have."""
    found = {name: _converter(hint) for name, hint in get_type_hints(kind).items()}
    return {name: convert for name, convert in found.items() if convert is not None}


def _converter(hint: Any) -> _Converter | None:
    """Return the converter for a type; None if JSON has the type."""
    if hint is float:
        return float  # JSON and DynamoDB may return a whole number.
    if isinstance(hint, type) and issubclass(hint, JsonRecord):
        return hint.from_values
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (_converter(each) for each in get_args(hint) if each is not NoneType)
        return None if inner is None else lambda value: None if value is None else inner(value)
    if get_origin(hint) is tuple:
        item = _converter(get_args(hint)[0])
        return tuple if item is None else lambda values: tuple(map(item, values))
    return None
