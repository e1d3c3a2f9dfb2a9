"""Holds a document against the blueprint's types, and keeps the parts that fit when not all does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from inference_blueprints.errors import Problem
from inference_blueprints.spec.document import INVALID, Document
from inference_blueprints.spec.sections import Sections
from inference_blueprints.spec.type_messages import message, owner
from inference_blueprints.spec.types import (
    API_VERSION,
    Blueprint,
    Cluster,
    Environment,
    Metadata,
    Model,
    Network,
    Pool,
    Section,
    Spec,
)
from inference_blueprints.spec.wording import Path, quote

_Part = TypeVar("_Part", bound=Section)


@dataclass(frozen=True, slots=True)
class Typed:
    """What the types make of a document.

    Parameters
    ----------
    blueprint
        The whole; None when something does not fit.
    sections
        The parts that fit.
    problems
        What does not fit.
    """

    blueprint: Blueprint | None
    sections: Sections
    problems: tuple[Problem, ...]


def validate(document: Document) -> Typed:
    """Hold a document against the types.

    Parameters
    ----------
    document
        A document whose own problems are reported already; they are not repeated here.
    """
    try:
        blueprint = Blueprint.model_validate(document.root.value, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)
        faults = {_path(document, detail) for detail in details}
        return Typed(None, _sound_sections(document, faults), tuple(_problems(document, details)))
    return Typed(blueprint, Sections.of(blueprint), ())


def other_version(document: Document) -> Problem | None:
    """Return the problem of a blueprint for another release, of which nothing else can be said."""
    version = document.root.value.get("apiVersion") if isinstance(document.root.value, dict) else None
    group = API_VERSION.split("/")[0] + "/"
    if not isinstance(version, str) or not version.startswith(group) or version == API_VERSION:
        return None
    message = (
        f"got {quote(version)}, this release reads '{API_VERSION}'; use the release that the file is for"
    )
    return document.problem(("apiVersion",), message)


def _path(document: Document, detail: ErrorDetails) -> Path:
    """Return where in the document an error is: pydantic's place less its names of union members."""
    place = detail["loc"]
    if detail["type"] == "missing":
        return place
    path: Path = ()
    while len(path) < len(place) and place[len(path)] in document.node(path).children:
        path = place[: len(path) + 1]
    return path


def _problems(document: Document, details: Iterable[ErrorDetails]) -> Iterable[Problem]:
    """Yield one problem a place, leaving out what the document's own problems explain."""
    seen: set[Path] = set()
    for detail in details:
        path = _path(document, detail)
        if path not in seen and document.node(path).value is not INVALID:
            seen.add(path)
            yield document.problem(path, message(document.node(path), path, detail), at_key=owner(detail))


def _sound_sections(document: Document, faults: set[Path]) -> Sections:
    """Validate one by one the parts in which nothing is wrong."""
    spec = document.root.value.get("spec") if isinstance(document.root.value, dict) else None
    content = spec if isinstance(spec, dict) else {}
    names = {"metadata", *Spec.model_fields}
    whole = frozenset(name for name in names if not _touches(faults, _section_path(name)))

    def part(name: str, kind: type[_Part]) -> _Part | None:
        holder = document.root.value if name == "metadata" else content
        return _valid(kind, holder.get(name, {})) if name in whole else None

    def items(name: str, kind: type[_Part]) -> Mapping[int, _Part]:
        listed = content.get(name)
        candidates = listed if isinstance(listed, list) else []
        return {
            index: _valid(kind, item)
            for index, item in enumerate(candidates)
            if not _touches(faults, ("spec", name, index))
        }

    return Sections(
        metadata=part("metadata", Metadata),
        environment=part("environment", Environment),
        network=part("network", Network),
        cluster=part("cluster", Cluster),
        pools=items("pools", Pool),
        models=items("models", Model),
        whole=whole,
    )


def _section_path(name: str) -> Path:
    return ("metadata",) if name == "metadata" else ("spec", name)


def _touches(faults: Iterable[Path], path: Path) -> bool:
    """Return whether a fault lies at a path, below it, or at something that holds it."""
    return any(fault[: len(path)] == path[: len(fault)] for fault in faults)


def _valid(kind: type[_Part], value: Any) -> _Part:
    return kind.model_validate(value, by_alias=True, by_name=False)
