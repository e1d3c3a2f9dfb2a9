"""Holds a document against the blueprint's types, and keeps the parts that fit when not all does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from inference_blueprints.errors import Problem
from inference_blueprints.spec.document import INVALID, Document
from inference_blueprints.spec.partial import Faults, partial_section
from inference_blueprints.spec.sections import Sections
from inference_blueprints.spec.type_messages import is_about_the_key, message
from inference_blueprints.spec.types import (
    API_VERSION,
    Batch,
    Blueprint,
    Cluster,
    Environment,
    Metadata,
    Model,
    Network,
    Pool,
    Queueing,
    Section,
    SignalStore,
    Team,
)
from inference_blueprints.spec.wording import Path, quote

_Part = TypeVar("_Part", bound=Section)
_SINGLE: Mapping[str, tuple[Path, type[Section]]] = MappingProxyType(
    {
        "metadata": (("metadata",), Metadata),
        "environment": (("spec", "environment"), Environment),
        "network": (("spec", "network"), Network),
        "cluster": (("spec", "cluster"), Cluster),
    }
)
_OPTIONAL: Mapping[str, tuple[Path, type[Section]]] = MappingProxyType(
    {
        "queueing": (("spec", "queueing"), Queueing),
        "batch": (("spec", "batch"), Batch),
        "signal_store": (("spec", "signalStore"), SignalStore),
    }
)
_LISTS: Mapping[str, tuple[Path, type[Section]]] = MappingProxyType(
    {
        "pools": (("spec", "pools"), Pool),
        "models": (("spec", "models"), Model),
        "teams": (("spec", "teams"), Team),
    }
)


@dataclass(frozen=True, slots=True)
class Typed:
    """What the types make of a document.

    Parameters
    ----------
    blueprint
        The whole; None when something does not fit.
    sections
        The parts that fit as a whole.
    partial
        The parts that fit in part, each once with the others that can be used and once alone; values in them
        raise `Undecidable` where they do not fit.
    problems
        What does not fit.
    """

    blueprint: Blueprint | None
    sections: Sections
    partial: tuple[Sections, ...]
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
        faults = Faults({_path(document, detail) for detail in details})
        sound = _sound_sections(document, faults)
        partial = tuple(_partial_sections(document, faults, sound))
        return Typed(None, sound, partial, tuple(_problems(document, details)))
    return Typed(blueprint, Sections.of(blueprint), (), ())


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
            yield document.problem(
                path, message(document.node(path), path, detail), at_key=is_about_the_key(detail)
            )


def _sound_sections(document: Document, faults: Faults) -> Sections:
    """Validate one by one the parts in which nothing is wrong."""

    def part(path: Path, kind: type[_Part]) -> _Part | None:
        return None if faults.touch(path) else _valid(kind, document.value(path, default={}))

    def optional(name: str) -> Any:
        path, kind = _OPTIONAL[name]
        return part(path, kind) if document.value(path) is not None else None

    def items(path: Path, kind: type[_Part]) -> Mapping[int, _Part]:
        indexes = range(len(_list(document, path)))
        parts = {index: part((*path, index), kind) for index in indexes}
        return {index: item for index, item in parts.items() if item}

    return Sections(
        metadata=part(("metadata",), Metadata),
        environment=part(("spec", "environment"), Environment),
        network=part(("spec", "network"), Network),
        cluster=part(("spec", "cluster"), Cluster),
        queueing=optional("queueing"),
        batch=optional("batch"),
        signal_store=optional("signal_store"),
        pools=items(("spec", "pools"), Pool),
        models=items(("spec", "models"), Model),
        teams=items(("spec", "teams"), Team),
        pool_names=_names(document, faults, ("spec", "pools")),
        model_names=_names(document, faults, ("spec", "models")),
        team_count=len(_list(document, ("spec", "teams"))),
        queue_count=len(_list(document, ("spec", "batch", "queues"))),
        signal_owners=_signal_owners(document, faults),
    )


def _partial_sections(document: Document, faults: Faults, sound: Sections) -> Iterable[Sections]:
    """Yield all sections as far as they fit, then each faulty item alone, where no other stops a rule."""
    given = {name: part for name, part in _OPTIONAL.items() if document.value(part[0]) is not None}
    parts: dict[str, Any] = {
        name: partial_section(kind, document, path, faults)
        for name, (path, kind) in {**_SINGLE, **given}.items()
    }
    lists: dict[str, Any] = {
        name: {
            index: partial_section(kind, document, (*path, index), faults)
            for index in range(len(_list(document, path)))
        }
        for name, (path, kind) in _LISTS.items()
    }
    everything = replace(sound, **parts, **lists)
    yield everything
    for name, items in lists.items():
        for index, item in items.items():
            if index not in getattr(sound, name):
                alone: dict[str, Any] = {name: {index: item}, "about": name}
                yield replace(everything, **alone)


def _names(document: Document, faults: Faults, path: Path) -> tuple[str, ...] | None:
    """Return the names of a list's items, unless one of them, or the list, is at fault."""
    name_paths: list[Path] = [(*path, index, "name") for index in range(len(_list(document, path)))]
    if not name_paths or any(faults.touch(name_path) for name_path in name_paths):
        return None
    return tuple(document.value(name_path) for name_path in name_paths)


def _signal_owners(document: Document, faults: Faults) -> Mapping[str, str] | None:
    """Return teams by the names of their signals, unless one of them, or the list, is at fault."""
    path: Path = ("spec", "signalStore", "signals")
    if document.value(path) is None:
        return {}
    names = _names(document, faults, path)
    teams = [(*path, index, "team") for index in range(len(names or ()))]
    if names is None or any(faults.touch(team) for team in teams):
        return None
    return dict(zip(names, map(document.value, teams), strict=True))


def _list(document: Document, path: Path) -> list[Any]:
    """Return the list at a path; an empty one where there is none."""
    value = document.value(path, default=[])
    return value if isinstance(value, list) else []


def _valid(kind: type[_Part], value: Any) -> _Part:
    return kind.model_validate(value, by_alias=True, by_name=False)
