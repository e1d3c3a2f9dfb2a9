"""Parses YAML text into a document.

Only the events of PyYAML's parser are used: its own composer ends the process on deep nesting and keeps the
last of duplicate keys silently. Only plain data is accepted: one document without tags and merge keys.
Aliases are followed while the document stays small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn, cast

import yaml

from inference_blueprints.spec.document import (
    BLUEPRINT,
    INVALID,
    AmbiguousScalarError,
    Document,
    FileKind,
    Node,
    Position,
    resolve,
)
from inference_blueprints.spec.wording import Path, path_text, quote
from inference_contracts.errors import BlueprintError, Problem

# Words errors of YAML's syntax: where a quote or bracket opens that is not closed, and what to write.

_CLOSING = {"[": "]", "{": "}"}
_OPENING_TOKENS = (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)
_CLOSING_TOKENS = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)
#: The parser's words, and what to say instead.
_PLAIN_WORDS = {
    "mapping values are not allowed in this context": (
        "got a second ': ' in one value; quote the value, or begin a new line"
    ),
    "did not find expected key": (
        "got something that is not a key of the section above; indent it like the other keys, as `key: value`"
    ),
    "could not find expected ':'": "got a line without ':'; write `key: value`",
    "found character that cannot start any token": (
        "got a character that cannot begin a value in YAML; put the value in quotes"
    ),
}


def syntax_problem(error: yaml.YAMLError, text: str, file: str) -> Problem:
    """Return the problem of a syntax error.

    error: The parser's error.
    text: The file's text.
    file: Its name in messages.
    """
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Problem(file, 0, 0, "", f"is not valid YAML: {quote(str(error))}")
    mark = error.problem_mark
    lines = text.splitlines()
    indentation = lines[mark.line][: mark.column + 1] if mark.line < len(lines) else ""
    if indentation.endswith("\t") and not indentation.strip():
        return _problem(file, mark, "got a tab in the indentation; YAML allows only spaces")
    unclosed = _unclosed(error, mark, text)
    if unclosed is not None:
        return _problem(file, *unclosed)
    if error.context == "while scanning a simple key" and error.context_mark:
        mark = error.context_mark
    default = " ".join(part for part in ("is not valid YAML:", error.problem, error.context) if part)
    return _problem(file, mark, _PLAIN_WORDS.get(error.problem or "", default))


def _problem(file: str, mark: yaml.Mark, message: str) -> Problem:
    return Problem(file, mark.line + 1, mark.column + 1, "", message)


def _unclosed(error: yaml.MarkedYAMLError, end: yaml.Mark, text: str) -> tuple[yaml.Mark, str] | None:
    """Return where a quote or bracket opens that explains the error, and the message; None if none does."""
    if error.context == "while scanning a quoted scalar" and error.context_mark:
        return error.context_mark, _message(text[error.context_mark.index])
    opened: list[yaml.Token] = []
    quoted: yaml.Token | None = None
    for token in _tokens_before(text, end):
        if isinstance(token, _OPENING_TOKENS):
            opened.append(token)
        elif isinstance(token, _CLOSING_TOKENS) and opened:
            opened.pop()
        quoted = token if isinstance(token, yaml.ScalarToken) and not token.plain else quoted
    # A quote without its end takes the following lines up to the next quote, and what follows makes no sense.
    if quoted and quoted.start_mark.line < quoted.end_mark.line == end.line:
        return quoted.start_mark, _message(text[quoted.start_mark.index])
    is_unfinished = (error.problem or "").startswith("did not find expected ','")
    if opened and (is_unfinished or opened[-1].start_mark.line < end.line):
        return opened[-1].start_mark, _message(text[opened[-1].start_mark.index])
    return None


def _message(opening: str) -> str:
    closing = _CLOSING.get(opening)
    if closing is None:
        return f"the quote {opening} opens here and is not closed on this line; close it with {opening}"
    return f"the bracket {opening} opens here and is not closed where it has to be; close it with {closing}"


def _tokens_before(text: str, end: yaml.Mark) -> Iterator[yaml.Token]:
    """Yield the tokens that begin before a place, as far as the text can be read."""
    try:
        for token in yaml.scan(text, yaml.CSafeLoader):
            if (token.start_mark.line, token.start_mark.column) >= (end.line, end.column):
                return
            yield token
    except yaml.YAMLError:
        return


MAXIMUM_DEPTH = 32
MAXIMUM_NODES = 20_000


def parse(text: str, file: str, kind: FileKind = BLUEPRINT) -> Document:
    """Read one YAML document.

    text: The file's text.
    file: Its name in messages.
    kind: Expected kind of the file.
    Raises BlueprintError if the text is not valid YAML, is empty, is not a mapping, or is nested too deep or
        too large.
    """
    composer = _Composer(text, file, kind)
    try:
        root = composer.root()
    except _StopError:
        raise BlueprintError(composer.problems) from None
    except yaml.YAMLError as error:
        raise BlueprintError([*composer.problems, syntax_problem(error, text, file)]) from error
    return Document(file, root, tuple(composer.problems))


class _StopError(Exception):
    """Nothing can be read beyond this point; the problem is recorded."""


class _Composer:
    """Builds nodes from the events of YAML's parser."""

    def __init__(self, text: str, file: str, kind: FileKind) -> None:
        self.problems: list[Problem] = []
        self._kind = kind
        self._file = file
        self._loader = yaml.CSafeLoader(text)
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._count = 0

    def root(self) -> Node:
        """Compose the root and check that nothing follows it."""
        self._event()
        if self._next_is(yaml.StreamEndEvent):
            self._stop_as_empty()
        self._event()
        root = self._compose(self._event(), ())
        self._event()
        if not isinstance(root.value, dict) and root.value is not INVALID:
            noun, first = self._kind.noun, self._kind.first_key
            message = f"got {quote(root.value)}, a {noun} is a mapping that begins with `{first}:`"
            self._stop(root.start, (), message)
        if not self._next_is(yaml.StreamEndEvent):
            message = f"got a second document; a file holds one {self._kind.noun}, remove the `---`"
            self._report(_position(self._event()), (), message)
        return root

    def _compose(self, event: yaml.Event, path: Path) -> Node:
        """Compose the node that an event begins."""
        start = _position(event)
        if len(path) > MAXIMUM_DEPTH:
            self._stop(
                start, path, f"is nested over {MAXIMUM_DEPTH} levels deep; a {self._kind.noun} needs about 10"
            )
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), start, path)
        count = self._count
        self._add_to_count(1, start, path)
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, start, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(start, path)
        else:
            node = self._mapping(start, path)
        opening = cast("yaml.ScalarEvent | yaml.CollectionStartEvent", event)
        if opening.tag is not None:
            node = self._invalid(
                start, path, f"got the tag {quote(opening.tag)}; tags are not supported, remove it"
            )
        if opening.anchor is not None:
            self._anchors[opening.anchor] = node, self._count - count
        return node

    def _alias(self, anchor: str, start: Position, path: Path) -> Node:
        """Return the anchored node, placed where the alias stands."""
        if anchor not in self._anchors:
            message = f"got the alias {quote('*' + anchor)}, no complete value before it has this anchor"
            return self._invalid(start, path, message)
        node, count = self._anchors[anchor]
        self._add_to_count(count, start, path)
        return replace(node, start=start)

    def _scalar(self, event: yaml.ScalarEvent, start: Position, path: Path) -> Node:
        """Compose text, a number or a truth value."""
        if not event.implicit[0]:
            return Node(event.value, start)
        try:
            value = resolve(event.value)
        except AmbiguousScalarError as error:
            return self._invalid(start, path, f"got {quote(event.value)}, {error}")
        if value is None and not path:
            self._stop_as_empty()
        if value is None:
            return self._invalid(start, path, "has no value; give it one or remove the key")
        return Node(value, start, event.value)

    def _sequence(self, start: Position, path: Path) -> Node:
        """Compose a list."""
        children: dict[str | int, Node] = {}
        while not self._next_is(yaml.SequenceEndEvent):
            index = len(children)
            children[index] = self._compose(self._event(), (*path, index))
        self._event()
        return Node([child.value for child in children.values()], start, children=children)

    def _mapping(self, start: Position, path: Path) -> Node:
        """Compose a mapping; of a key given twice the first counts."""
        children: dict[str | int, Node] = {}
        is_merged = False
        while not self._next_is(yaml.MappingEndEvent):
            event = self._event()
            key = self._key(event, path)
            is_merged = is_merged or key == "<<"
            place = path if key is None else (*path, key)
            child = replace(self._compose(self._event(), place), key=_position(event))
            if key in children:
                message = (
                    f"got the key {quote(key)} twice, first in line {_line(children[key])}; keep one of them"
                )
                self._report(_position(event), place, message)
            elif key is not None:
                children[key] = child
        self._event()
        # The keys that a merge key would add are unknown, so the rest is not checked.
        value = INVALID if is_merged else {key: child.value for key, child in children.items()}
        return Node(value, start, children=children)

    def _key(self, event: yaml.Event, path: Path) -> str | None:
        """Return a mapping's key; None if it is not text, which is reported."""
        position = _position(event)
        if not isinstance(event, yaml.ScalarEvent):
            self._compose(event, path)
            self._report(position, path, "got a key that is not text; write `key: value`")
            return None
        key = str(event.value)
        fault = f"tag {quote(event.tag)}; tags are not read, remove it" if event.tag else ""
        if event.implicit[0]:
            fault = _plain_key_fault(key)
        if fault:
            self._report(position, (*path, key), f"got the {fault}")
        return None if fault and key != "<<" else key

    def _add_to_count(self, nodes: int, start: Position, path: Path) -> None:
        """Stop at a document that is too large; a few lines with aliases in aliases can be enough."""
        self._count += nodes
        if self._count > MAXIMUM_NODES:
            message = f"comes after {MAXIMUM_NODES} values, the maximum with aliases written out; use fewer"
            self._stop(start, path, message)

    def _invalid(self, start: Position, path: Path, message: str) -> Node:
        """Report a value and return a node that marks it as invalid."""
        self._report(start, path, message)
        return Node(INVALID, start)

    def _report(self, position: Position, path: Path, message: str) -> None:
        """Record a problem and go on."""
        self.problems.append(Problem(self._file, *position, path_text(path), message))

    def _stop(self, position: Position, path: Path, message: str) -> None:
        """Record a problem and give up."""
        self._report(position, path, message)
        raise _StopError

    def _stop_as_empty(self) -> NoReturn:
        """Report that the file holds nothing, or only comments, and give up."""
        message = f"is empty; {self._kind.when_empty}"
        self.problems.append(Problem(self._file, 0, 0, "", message))
        raise _StopError

    def _event(self) -> yaml.Event:
        return cast("yaml.Event", self._loader.get_event())

    def _next_is(self, kind: type[yaml.Event]) -> bool:
        return bool(self._loader.check_event(kind))


def _position(event: yaml.Event) -> Position:
    """Return where an event begins."""
    mark = cast("yaml.Mark", event.start_mark)
    return Position(mark.line + 1, mark.column + 1)


def _line(node: Node) -> int:
    return node.key.line if node.key else node.start.line


def _plain_key_fault(key: str) -> str:
    """Return the fault of an unquoted key; empty if YAML reads it as text."""
    if key == "<<":
        return "merge key '<<'; merge keys are not supported, write the keys out"
    try:
        is_text = isinstance(resolve(key), str)
    except AmbiguousScalarError as error:
        return f"key {quote(key)}, {error}"
    return "" if is_text else f"key {quote(key)}, which is not text in YAML; quote it"
