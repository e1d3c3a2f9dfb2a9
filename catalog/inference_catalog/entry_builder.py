"""Creates entries of the catalogue from their data, and reports missing and unknown fields."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from inference_contracts.errors import UserError

# Notes beside a pinned version, which ``make outdated`` reports: its date, and why it stands there.

_Value = TypeVar("_Value")

#: Date of the release (``2026-10-23``), and the reason for the version.
PIN_NOTES = ("released", "reason")


def without_notes(entry: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return an entry of a data file without its notes, which no program needs.

    Parameters
    ----------
    entry
        The entry, with or without notes.
    """
    return {key: value for key, value in entry.items() if key not in PIN_NOTES}


# The error for a name that the catalogue does not have.


class UnknownEntryError(UserError, LookupError):
    """The catalogue has no entry with this name.

    Parameters
    ----------
    kind
        Kind of the entry, such as ``instance type``.
    name
        The requested name.
    known
        The names in the catalogue.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        self.close_matches = tuple(difflib.get_close_matches(name, self.known, n=3))
        hint = f"; did you mean {' or '.join(repr(match) for match in self.close_matches)}?"
        super().__init__(f"got {kind} {name!r}, not in the catalogue{hint if self.close_matches else ''}")


_Entry = TypeVar("_Entry")


class CatalogueError(UserError):
    """A data file of the catalogue is invalid. The message names the file, the entry and the problem."""


class LazyEntries(Mapping[str, _Entry]):
    """Entries by name, each built when it is first used: a short command needs few of hundreds.

    Parameters
    ----------
    names
        All names, in order.
    build
        Returns the entry of a name.
    """

    def __init__(self, names: Iterable[str], build: Callable[[str], _Entry]) -> None:
        self._names = dict.fromkeys(names)
        self._build = build
        self._built: dict[str, _Entry] = {}

    def __getitem__(self, name: str) -> _Entry:
        if name not in self._built:
            if name not in self._names:
                raise KeyError(name)
            self._built[name] = self._build(name)
        return self._built[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


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
