"""What follows from values that do not fit the types: a problem for each, and a blueprint without them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pydantic_core import ErrorDetails

from inference_blueprints.spec.document import INVALID, Document
from inference_blueprints.spec.invalid_values import InvalidValue, Place
from inference_blueprints.spec.structure import Key, is_choice, keys
from inference_blueprints.spec.type_messages import is_about_the_key, message
from inference_blueprints.spec.types import Blueprint, Section
from inference_blueprints.spec.wording import Path
from inference_contracts.errors import Problem


def incomplete_blueprint(document: Document, details: Iterable[ErrorDetails]) -> Blueprint:
    """Build a blueprint from a document with values that do not fit the types.

    document: The whole document.
    details: Pydantic's errors about them.
    Returns: Every value that fits, validated, at its place; a `InvalidValue` in place of each that does not.
    """
    faults = {_path(document, detail) for detail in details}
    blueprint: Blueprint = _Builder(document, faults).section(Blueprint, (), ())
    return blueprint


class _Builder:
    """Builds sections. Paths refer to the document, places to the blueprint."""

    def __init__(self, document: Document, faults: Collection[Path]) -> None:
        self._document = document
        self._faults = frozenset(faults)
        self._above = {path[:length] for path in faults for length in range(len(path))}

    def section(self, kind: type[Section], path: Path, place: Place) -> Any:
        """Return a section, or an `InvalidValue` if the section itself does not fit."""
        value = self._document.value(path, default={})
        if not self._is_touched(path):
            return kind.model_validate(value, by_alias=True, by_name=False)
        known = keys(kind)
        if self._is_at_fault(path) or (is_choice(kind) and not value.keys() <= known.keys()):
            return InvalidValue(place)
        completed = kind.completed(value) if isinstance(value, dict) else {}
        attributes: dict[str, Any] = {
            key.attribute: key.child.model_validate(completed[name])
            if key.child and name in completed and name not in value
            else self._value(key, (*path, name), (*place, key.attribute))
            for name, key in known.items()
        }
        return kind.model_construct(**attributes)

    def _value(self, key: Key, path: Path, place: Place) -> Any:
        """Return the value of a key."""
        value = self._document.value(path)
        if value is None and not self._is_touched(path):
            return _absent(key)
        if not key.is_list:
            return self._item(key, path, place)
        if not isinstance(value, list) or self._is_at_fault(path):
            return InvalidValue(place)
        return [self._item(key, (*path, index), (*place, index)) for index in range(len(value))]

    def _item(self, key: Key, path: Path, place: Place) -> Any:
        """Return a section, or a value that has no separate parts."""
        if key.child and not (key.has_plain_form and not isinstance(self._document.value(path), dict)):
            return self.section(key.child, path, place)
        return InvalidValue(place) if self._is_touched(path) else self._document.value(path)

    def _is_at_fault(self, path: Path) -> bool:
        """Return whether the value at a path, or one that holds it, does not fit."""
        return any(path[:length] in self._faults for length in range(len(path) + 1))

    def _is_touched(self, path: Path) -> bool:
        """Return whether the value at a path, a part of it, or one that holds it, does not fit."""
        return self._is_at_fault(path) or path in self._above


def _absent(key: Key) -> Any:
    """Return the value of an optional key that is not given."""
    default = key.field.get_default(call_default_factory=True)
    return key.child.model_validate(default) if key.child and isinstance(default, dict) else default


def type_problems(document: Document, details: Iterable[ErrorDetails]) -> Iterable[Problem]:
    """Yield one problem per place, without values that the document has already reported."""
    seen: set[Path] = set()
    for detail in details:
        path = _path(document, detail)
        if path not in seen and document.node(path).value is not INVALID:
            seen.add(path)
            yield document.problem(
                path, message(document.node(path), path, detail), at_key=is_about_the_key(detail)
            )


def _path(document: Document, detail: ErrorDetails) -> Path:
    """Return the place of an error in the document: pydantic's place without names of union members."""
    path: Path = ()
    for part in detail["loc"]:
        if part in document.node(path).children:
            path = (*path, part)
    return (*path, detail["loc"][-1]) if detail["type"] == "missing" else path
