"""Checks a document against the blueprint's types."""

from __future__ import annotations

from pydantic import ValidationError

from inference_blueprints.spec.document import Document
from inference_blueprints.spec.types import API_VERSION, Blueprint
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Problem
from inference_contracts.records import dataclass


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
        # Only a file with errors needs what describes the types.
        from inference_blueprints.spec.type_errors import incomplete_blueprint, type_problems

        details = error.errors(include_url=False)
        return Validation(
            incomplete_blueprint(document, details),
            is_complete=False,
            problems=tuple(type_problems(document, details)),
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
