"""Words errors of YAML's syntax: where a quote or bracket opens that is not closed, and what to write."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Problem

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
