"""YAML text into plain values that remember where they stood.

Only the parser's events are used: PyYAML's own composer ends the process on deep nesting and keeps the last of
duplicate keys silently. What is read is plain data: no tags, no merge keys, one document; aliases are followed
as long as the whole stays small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import yaml

from inference_blueprints.errors import BlueprintError, Problem
from inference_blueprints.spec.scalars import AmbiguousScalarError, resolve
from inference_blueprints.spec.wording import Path, path_text, quote

MAXIMUM_DEPTH = 32
MAXIMUM_NODES = 50_000


class _Invalid:
    """Stands for a value that has been reported already; no type accepts it."""


INVALID = _Invalid()


class Position(NamedTuple):
    """Line and column, counted from 1."""

    line: int
    column: int


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
    size
        Nodes in it with every alias written out.
    """

    value: Any
    start: Position
    text: str | None = None
    children: Mapping[str | int, Node] = field(default_factory=lambda: MappingProxyType({}))
    key: Position | None = None
    size: int = 1

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
        What was found wrong below the level of types; each such value is ``INVALID`` in its node.
    reported
        Paths of those problems.
    """

    file: str
    root: Node
    problems: tuple[Problem, ...]
    reported: frozenset[Path]

    def node(self, path: Path) -> Node:
        """Return the node at a path, or its closest ancestor that exists."""
        node = self.root
        for part in path:
            if part not in node.children:
                break
            node = node.children[part]
        return node

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> Problem:
        """Tie a message to the place of a path, or of its closest ancestor in the file."""
        node = self.node(path)
        place = node.key if at_key and node.key else node.place
        return Problem(self.file, place.line, place.column, path_text(path), message)


def parse(text: str, file: str) -> Document:
    """Read one YAML document.

    Parameters
    ----------
    text
        The file's text.
    file
        Its name in messages.

    Raises
    ------
    BlueprintError
        If the text is no YAML, empty, no mapping, too deep or too large to go on with.
    """
    return _Composer(text, file).document()


class _Stop(Exception):  # noqa: N818 (never leaves this module)
    """Nothing can be read beyond this point; the problem is recorded."""


class _Composer:
    """Builds nodes from the events of YAML's parser."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._loader = yaml.CSafeLoader(text)
        self._anchors: dict[str, Node] = {}
        self._problems: list[Problem] = []
        self._reported: set[Path] = set()

    def document(self) -> Document:
        """Compose the one document."""
        try:
            root = self._whole()
        except _Stop:
            raise BlueprintError(self._problems) from None
        except yaml.YAMLError as error:
            self._add_syntax_problem(error)
            raise BlueprintError(self._problems) from error
        return Document(self._file, root, tuple(self._problems), frozenset(self._reported))

    def _whole(self) -> Node:
        """Compose the root and see that nothing follows it."""
        self._event()
        if self._next_is(yaml.StreamEndEvent):
            self._problems.append(Problem(self._file, 0, 0, "", "is empty; `blueprints init` copies a blueprint"))
            raise _Stop
        self._event()
        root = self._compose(self._event(), ())
        self._event()
        if not isinstance(root.value, dict) and root.value is not INVALID:
            self._stop(root.start, (), f"got {_kind(root)}, a blueprint is a mapping: `apiVersion: …`, `kind: …`")
        if not self._next_is(yaml.StreamEndEvent):
            start = _position(self._event())
            self._report(start, (), "got a second document; a file holds one blueprint, remove the `---`")
        return root

    def _compose(self, event: yaml.Event, path: Path) -> Node:
        """Compose the node that an event begins."""
        start = _position(event)
        if len(path) > MAXIMUM_DEPTH:
            self._stop(start, path, f"is nested over {MAXIMUM_DEPTH} levels deep; a blueprint needs about 10")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, start, path)
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, start, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(start, path)
        else:
            node = self._mapping(start, path)
        if event.tag is not None:
            message = f"got the tag {quote(event.tag)}; tags are not read, remove it"
            node = self._invalid(replace(node, start=start), path, message)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent, start: Position, path: Path) -> Node:
        """Return the anchored node, placed where the alias stands."""
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            message = f"got the alias {quote('*' + event.anchor)}, no finished value before it has that anchor"
            return self._invalid(Node(INVALID, start), path, message)
        self._limit(anchored.size, start, path)
        return replace(anchored, start=start)

    def _scalar(self, event: yaml.ScalarEvent, start: Position, path: Path) -> Node:
        """Compose a text, number or truth value."""
        if not event.implicit[0]:
            return Node(event.value, start)
        try:
            value = resolve(event.value)
        except AmbiguousScalarError as error:
            return self._invalid(Node(INVALID, start, event.value), path, f"got {quote(event.value)}, {error}")
        node = Node(value, start, event.value)
        if value is None:
            return self._invalid(node, path, "has no value; give it one or remove the key")
        return node

    def _sequence(self, start: Position, path: Path) -> Node:
        """Compose a list."""
        children: dict[str | int, Node] = {}
        while not self._next_is(yaml.SequenceEndEvent):
            index = len(children)
            children[index] = self._compose(self._event(), (*path, index))
        self._event()
        values = [child.value for child in children.values()]
        return self._sized(Node(values, start, children=children), path)

    def _mapping(self, start: Position, path: Path) -> Node:
        """Compose a mapping; of a key given twice the first counts."""
        children: dict[str | int, Node] = {}
        while not self._next_is(yaml.MappingEndEvent):
            event = self._event()
            position = _position(event)
            key = self._key(event, path)
            child = replace(self._compose(self._event(), (*path, key)), key=position)
            if key in children:
                first = children[key].key
                line = first.line if first else start.line
                message = f"got the key {quote(key)} twice, first in line {line}; keep one of them"
                self._report(position, (*path, key), message)
            else:
                children[key] = child
        self._event()
        values = {key: child.value for key, child in children.items()}
        return self._sized(Node(values, start, children=children), path)

    def _key(self, event: yaml.Event, path: Path) -> str:
        """Return a mapping's key; what is no plain text is reported."""
        position = _position(event)
        if not isinstance(event, yaml.ScalarEvent):
            self._compose(event, path)
            self._report(position, path, "got a key that is no text; write `key: value`")
            raise _Stop
        key = str(event.value)
        if event.tag is not None:
            self._report(position, (*path, key), f"got the tag {quote(event.tag)}; tags are not read, remove it")
        elif event.implicit[0]:
            self._check_plain_key(key, position, path)
        return key

    def _check_plain_key(self, key: str, position: Position, path: Path) -> None:
        """Report an unquoted key that YAML does not read as text."""
        if key == "<<":
            self._stop(position, path, "got a merge key `<<`; merge keys are not read, write the keys out")
        try:
            value = resolve(key)
        except AmbiguousScalarError as error:
            self._report(position, (*path, key), f"got the key {quote(key)}, {error}")
            return
        if not isinstance(value, str):
            self._report(position, (*path, key), f"got the key {quote(key)}, which is no text in YAML; quote it")

    def _sized(self, node: Node, path: Path) -> Node:
        """Count what a collection holds."""
        size = 1 + sum(child.size for child in node.children.values())
        self._limit(size, node.start, path)
        return replace(node, size=size)

    def _limit(self, size: int, start: Position, path: Path) -> None:
        """Stop at a document that is too large, which aliases within aliases make out of a few lines."""
        if size > MAXIMUM_NODES:
            message = f"holds over {MAXIMUM_NODES} values with its aliases written out; use fewer"
            self._stop(start, path, message)

    def _invalid(self, node: Node, path: Path, message: str) -> Node:
        """Report a value and put the mark in its place."""
        node = replace(node, value=INVALID, children={})
        self._report(node.start, path, message)
        return node

    def _report(self, position: Position, path: Path, message: str) -> None:
        """Record a problem and go on."""
        self._problems.append(Problem(self._file, *position, path_text(path), message))
        self._reported.add(path)

    def _stop(self, position: Position, path: Path, message: str) -> None:
        """Record a problem and give up."""
        self._report(position, path, message)
        raise _Stop

    def _add_syntax_problem(self, error: yaml.YAMLError) -> None:
        """Record what YAML's own parser refused."""
        if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
            self._problems.append(Problem(self._file, 0, 0, "", f"is no YAML: {quote(str(error))}"))
            return
        mark = error.problem_mark
        lines = self._text.splitlines()
        indent = lines[mark.line][: mark.column + 1] if mark.line < len(lines) else ""
        message = f"is no YAML: {error.problem}" + (f" {error.context}" if error.context else "")
        if indent.endswith("\t") and not indent.strip():
            message = "got a tab in the indentation; YAML takes spaces only"
        self._problems.append(Problem(self._file, mark.line + 1, mark.column + 1, "", message))

    def _event(self) -> yaml.Event:
        return self._loader.get_event()

    def _next_is(self, kind: type[yaml.Event]) -> bool:
        return bool(self._loader.check_event(kind))


def _position(event: yaml.Event) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)


def _kind(node: Node) -> str:
    """Return what a node is, in a user's words."""
    return quote(node.value if node.text is None else node.text)
