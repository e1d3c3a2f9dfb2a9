"""Plain values that remember where they stood in their file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from inference_blueprints.errors import Finding, Problem
from inference_blueprints.spec.wording import Path, path_text


class _Invalid:
    """Stands for a value that has been reported already; no type accepts it."""


INVALID = _Invalid()


class Position(NamedTuple):
    """Line and column, counted from 1."""

    line: int
    column: int


class FileKind(NamedTuple):
    """What a file is, for messages about the whole of it.

    Parameters
    ----------
    noun
        Such as ``blueprint``.
    first_key
        Key that it begins with.
    when_missing, when_empty
        What to do when there is none, or nothing in it.
    """

    noun: str
    first_key: str
    when_missing: str
    when_empty: str


BLUEPRINT = FileKind(
    noun="blueprint",
    first_key="apiVersion",
    when_missing="`blueprints list` shows the shipped ones",
    when_empty="`blueprints init` copies a blueprint to start from",
)


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the file and where it stands.

    Parameters
    ----------
    value
        Plain data: text, number, truth value, list, mapping, or ``INVALID``.
    start
        Where the value begins.
    text
        A plain scalar as it was written; None for anything else.
    children
        Nodes by key or index.
    key
        Where its key stands; None for list items and the root.
    """

    value: Any
    start: Position
    text: str | None = None
    children: Mapping[str | int, Node] = field(default_factory=lambda: MappingProxyType({}))
    key: Position | None = None

    @property
    def place(self) -> Position:
        """Where a problem with the value is shown: at a scalar itself, at the key of anything larger."""
        is_scalar = not isinstance(self.value, list | dict) and self.text != ""
        return self.start if is_scalar or self.key is None else self.key


@dataclass(frozen=True, slots=True)
class Document:
    """A file as values with places.

    Parameters
    ----------
    file
        Its name in messages.
    root
        The whole.
    problems
        What was found wrong below the level of types; a value that cannot be used is ``INVALID`` in its node.
    """

    file: str
    root: Node
    problems: tuple[Problem, ...]

    def node(self, path: Path) -> Node:
        """Return the node at a path, or its closest ancestor that exists."""
        node = self.root
        for part in path:
            if part not in node.children:
                break
            node = node.children[part]
        return node

    def value(self, path: Path, default: Any = None) -> Any:
        """Return the value at a path, or the default where the file has none."""
        node = self.root
        for part in path:
            if part not in node.children:
                return default
            node = node.children[part]
        return node.value

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> Problem:
        """Tie a message to the place of a path, or of its closest ancestor in the file."""
        node = self.node(path)
        place = node.key if at_key and node.key else node.place
        return Problem(self.file, place.line, place.column, path_text(path), message)

    def tie(self, finding: Finding) -> Problem:
        """Tie what a rule found to its place."""
        return replace(self.problem(finding.path, finding.message), severity=finding.severity)
