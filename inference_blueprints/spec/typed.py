"""Holds a document against the blueprint's types and says in a user's words what does not fit."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from inference_blueprints.errors import Problem
from inference_blueprints.spec.document import Document
from inference_blueprints.spec.types import Blueprint


@dataclass(frozen=True, slots=True)
class Typed:
    """What the types make of a document.

    Parameters
    ----------
    blueprint
        The whole; None when something does not fit.
    problems
        What does not fit.
    """

    blueprint: Blueprint | None
    problems: tuple[Problem, ...]


def validate(document: Document) -> Typed:
    """Hold a document against the types."""
    try:
        blueprint = Blueprint.model_validate(document.root.value, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)
        return Typed(None, tuple(document.problem(tuple(detail["loc"]), detail["msg"]) for detail in details))
    return Typed(blueprint, ())
