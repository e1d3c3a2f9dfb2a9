"""Plain values with their positions in the file, and what unquoted words of YAML mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from inference_blueprints.spec.wording import Path, path_text
from inference_contracts.errors import Finding, Problem
from inference_contracts.records import dataclass

# Values of unquoted YAML words. Words that YAML versions read differently are refused.
#
# YAML 1.1 (https://yaml.org/type/) reads ``on`` as true, ``1:30`` as 90 and ``010`` as 8; YAML 1.2 does not.
# Such words must be quoted or written differently.

#: Maximum digits of a number; 64 bits hold any 18 digits.
MAXIMUM_DIGITS = 18

_CONSTANTS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(
    r"[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?|[-+]?\.[0-9]+([eE][-+]?[0-9]{1,3})?"
)

#: Pattern of a word, and why it is refused.
_AMBIGUOUS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"(?i:y|yes|on)", "which YAML may read as true; write true, or quote it if it is text"),
        (r"(?i:n|no|off)", "which YAML may read as false; write false, or quote it if it is text"),
        (
            r"(?i:[-+]?\.inf|\.nan)",
            "which is not a finite number; write a finite one, or quote it if it is text",
        ),
        (r"[-+]?0[0-9_]+", "which YAML may read as octal; quote it, or write it without the leading 0"),
        (r"[-+]?0[oxb][0-9a-fA-F_]+", "which YAML may read as a number; write it in decimal, or quote it"),
        (
            r"[-+]?[0-9]+(_[0-9]*)+(\.[0-9_]*)?",
            "which YAML may read as a number; leave out the _, or quote it",
        ),
        (r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?", "which YAML may read in base 60; quote it"),
        (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?", "which YAML may read as a date; quote it"),
        (r"=|<<", "which has a special meaning in YAML; quote it"),
    )
)


class AmbiguousScalarError(ValueError):
    """A plain word that YAML versions read differently; the message states how, and what to write."""


def resolve(text: str) -> str | int | float | bool | None:
    """Return the value of a plain (unquoted) scalar.

    text: The scalar as written.
    Raises AmbiguousScalarError if YAML versions read it differently, or if it is a number that is too large.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    for pattern, reason in _AMBIGUOUS:
        if pattern.fullmatch(text):
            raise AmbiguousScalarError(reason)
    if _INTEGER.fullmatch(text):
        if len(text) > MAXIMUM_DIGITS:
            raise AmbiguousScalarError(
                f"a number of more than {MAXIMUM_DIGITS} digits; use a smaller one, or quote it if it is text"
            )
        return int(text)
    if _DECIMAL.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise AmbiguousScalarError(
                "which is too large a number; use a smaller one, or quote it if it is text"
            )
        return number
    return text


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
