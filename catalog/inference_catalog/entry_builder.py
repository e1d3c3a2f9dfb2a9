"""Creates entries of the catalogue from their data, and reports missing and unknown fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from inference_catalog.pin_notes import without_notes
from inference_contracts.errors import UserError

_Entry = TypeVar("_Entry")


class CatalogueError(UserError):
    """A data file of the catalogue is invalid. The message names the file, the entry and the problem."""


def build_entry(kind: type[_Entry], values: Mapping[str, Any], path: Path) -> _Entry:
    """Create one entry, without its notes on a pin. An error names every missing or unknown field."""
    declared = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    values = without_notes(values) | {name: values[name] for name in declared.keys() & values.keys()}
    required = {
        name
        for name, field in declared.items()
        if field.default is MISSING and field.default_factory is MISSING
    }
    missing = sorted(required - values.keys())
    unknown = sorted(values.keys() - declared.keys())
    if missing or unknown:
        raise CatalogueError(
            f"{path}: {values.get('name', '')}: missing fields: {', '.join(missing) or 'none'}; "
            f"unknown fields: {', '.join(unknown) or 'none'}"
        )
    return kind(**{name: _tuples(value) for name, value in values.items()})


def _tuples(value: Any) -> Any:
    """Convert nested lists to nested tuples."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
