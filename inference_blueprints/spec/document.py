"""Plain values with their positions in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from inference_blueprints.spec.wording import Path, path_text
from inference_contracts.errors import Finding, Problem


class _Invalid:
    """Marks a value that has already been reported; no type accepts it."""


INVALID = _Invalid()


class Position(NamedTuple):
    """Line and column, counted from 1."""

    line: int
    column: int


class FileKind(NamedTuple):
    """Kind of a file, for messages about the file."""

    noun: str
    """Such as ``blueprint``."""
    first_key: str
    """The key at the beginning."""
    when_missing: str
    when_empty: str
    """`when_missing`, `when_empty`: What to do if the file is missing or empty."""


BLUEPRINT = FileKind(
    noun="blueprint",
    first_key="apiVersion",
    when_missing="check the path, or use a shipped blueprint (`blueprints list`)",
    when_empty="copy a shipped blueprint with `blueprints init`",
)


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its position in the file."""

    value: Any
    """Plain data: text, number, truth value, list, mapping, or ``INVALID``."""
    start: Position
    """Where the value begins."""
    text: str | None = None
    """A plain scalar as written; None for anything else."""
    children: Mapping[str | int, Node] = field(default_factory=lambda: MappingProxyType({}))
    """Nodes by key or index."""
    key: Position | None = None
    """Position of its key; None for list items and the root."""

    @property
    def place(self) -> Position:
        """Where a problem with the value is shown: at a scalar itself, at the key of anything larger."""
        is_scalar = not isinstance(self.value, list | dict) and self.text != ""
        return self.start if is_scalar or self.key is None else self.key


@dataclass(frozen=True, slots=True)
class Document:
    """A file as values with positions."""

    file: str
    """Name of the file in messages."""
    root: Node
    """The root value."""
    problems: tuple[Problem, ...]
    """Errors of the YAML text; the node of a value that cannot be used holds ``INVALID``."""

    def node(self, path: Path) -> Node:
        """Return the node at a path, or its closest ancestor that exists."""
        node = self.root
        for part in path:
            if part not in node.children:
                break
            node = node.children[part]
        return node

    def value(self, path: Path, default: Any = None) -> Any:
        """Return the value at a path, or the default if the file has none."""
        node = self.root
        for part in path:
            if part not in node.children:
                return default
            node = node.children[part]
        return node.value

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> Problem:
        """Return a problem at a path, or at its closest ancestor in the file."""
        node = self.node(path)
        place = node.key if at_key and node.key else node.place
        return Problem(self.file, place.line, place.column, path_text(path), message)

    def tie(self, finding: Finding) -> Problem:
        """Return a finding as a problem with its position in the file."""
        return replace(self.problem(finding.path, finding.message), severity=finding.severity)
