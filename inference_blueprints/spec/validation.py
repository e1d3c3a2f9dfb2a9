"""Checks a document against the blueprint's types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from inference_blueprints.spec.document import INVALID, Document
from inference_blueprints.spec.incomplete import incomplete_blueprint
from inference_blueprints.spec.type_messages import is_about_the_key, message
from inference_blueprints.spec.types import API_VERSION, Blueprint
from inference_blueprints.spec.wording import Path, quote
from inference_contracts.errors import Problem


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of checking a document against the types."""

    blueprint: Blueprint
    """The blueprint, with an `InvalidValue` in place of each value that does not fit the types."""
    is_complete: bool
    """Whether the blueprint has no invalid values."""
    problems: tuple[Problem, ...] = ()
    """One error per value that does not fit, without values that the document has already reported."""


def validate(document: Document) -> Validation:
    """Check a document against the types."""
    try:
        blueprint = Blueprint.model_validate(document.root.value, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)
        faults = {_path(document, detail) for detail in details}
        return Validation(
            incomplete_blueprint(document, faults),
            is_complete=False,
            problems=tuple(_problems(document, details)),
        )
    return Validation(blueprint, is_complete=True)


def other_version(document: Document) -> Problem | None:
    """Return the problem of a blueprint for another release, which cannot be checked further."""
    version = document.root.value.get("apiVersion") if isinstance(document.root.value, dict) else None
    group = API_VERSION.split("/")[0] + "/"
    if not isinstance(version, str) or not version.startswith(group) or version == API_VERSION:
        return None
    message = (
        f"got {quote(version)}, this release supports '{API_VERSION}'; use the release for which it was "
        "written"
    )
    return document.problem(("apiVersion",), message)


def _path(document: Document, detail: ErrorDetails) -> Path:
    """Return the place of an error in the document: pydantic's place without names of union members."""
    path: Path = ()
    for part in detail["loc"]:
        if part in document.node(path).children:
            path = (*path, part)
    return (*path, detail["loc"][-1]) if detail["type"] == "missing" else path


def _problems(document: Document, details: Iterable[ErrorDetails]) -> Iterable[Problem]:
    """Yield one problem per place, without values that the document has already reported."""
    seen: set[Path] = set()
    for detail in details:
        path = _path(document, detail)
        if path not in seen and document.node(path).value is not INVALID:
            seen.add(path)
            yield document.problem(
                path, message(document.node(path), path, detail), at_key=is_about_the_key(detail)
            )
