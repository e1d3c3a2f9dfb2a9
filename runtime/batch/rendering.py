"""Renders prompts from a team's template, in a sandbox with bounded cost.

A template is data of one team, and it runs on workers that serve other teams too. It may read a row's fields,
test, filter and loop. It may not call, define or include anything. The length of the output and the number of
loop rounds are limited, and so are filters that can produce long output from short input. The only dependency
is Jinja2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from jinja2 import StrictUndefined, Template, TemplateError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

_MOST_ITERATIONS: Final = 100_000
_COUNTER: Final = " iterations"  # a template cannot contain this name
_CHECKED_OPERATORS: Final = frozenset({"+", "-", "*", "/", "//", "%"})

_SAFE_FILTERS: Final = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last"),
    *("length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "round", "select"),
    *("selectattr", "sort", "string", "sum", "title", "tojson", "trim", "truncate", "unique", "upper"),
    "wordcount",
)

_ALLOWED: Final = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.NSRef, nodes.Assign),
    *(nodes.If, nodes.For, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not),
    *(nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test, nodes.Tuple, nodes.List),
    *(nodes.Dict, nodes.Pair, nodes.Keyword, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv),
    *(nodes.Mod, nodes.Neg, nodes.Pos),
)


class RenderingError(Exception):
    """No prompt can be rendered from a template or a row. The message names the reason."""


class Prompts:
    """A compiled template.

    Raises
    ------
    RenderingError
        If it is not a valid template, or uses a forbidden feature.
    """

    def __init__(self, text: str, *, most_characters: int) -> None:
        self._most = most_characters
        environment = _Environment(most_characters)
        try:
            tree = environment.parse(text)
            _check(tree)
            self._template = _compile(environment, tree)
        except (TemplateError, RecursionError) as error:
            raise RenderingError(f"template: {_words(error)}") from error

    def render(self, row: Mapping[str, Any]) -> str:
        values = {"row": row, **row, _COUNTER: _Counter(_MOST_ITERATIONS)}
        pieces, size = [], 0
        try:
            for piece in self._template.generate(values):
                size += len(piece)
                if size > self._most:
                    raise RenderingError(f"template: the prompt is longer than {self._most} characters")
                pieces.append(piece)
        # Exceptions of operators and filters for values of the wrong type.
        except (TemplateError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise RenderingError(f"template: {_words(error)}") from error
        return "".join(pieces)


class _Counter:
    """Remaining loop rounds of a template."""

    def __init__(self, left: int) -> None:
        self._left = left

    def count(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self._left -= 1
            if self._left < 0:
                raise SecurityError(f"it loops more than {_MOST_ITERATIONS} times")
            yield value


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, without features that can produce very much output."""

    intercepted_binops = _CHECKED_OPERATORS

    def __init__(self, most_characters: int) -> None:
        super().__init__(undefined=StrictUndefined, keep_trailing_newline=True)
        self._most = most_characters
        self.globals.clear()
        self.filters = {name: FILTERS[name] for name in _SAFE_FILTERS}
        self.filters |= {"join": self._join, "replace": self._replace, _COUNTER: _counted}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise SecurityError(f"operator {operator} is only for numbers; write strings one after the other")
        return super().call_binop(context, operator, left, right)

    def _join(self, values: Iterable[Any], delimiter: str = "") -> str:
        words = [str(value) for value in values]
        self._check_size(len(words) * len(delimiter) + sum(map(len, words)))
        return delimiter.join(words)

    def _replace(self, text: str, old: str, new: str) -> str:
        self._check_size(len(text) + text.count(old) * len(new))
        return text.replace(old, new)

    def _check_size(self, size: int) -> None:
        if size > self._most:
            raise SecurityError(f"the output of a filter is longer than {self._most} characters")


@pass_context
def _counted(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    """Count the rounds of a loop."""
    counter: _Counter = context[_COUNTER]
    return counter.count(values)


def _check(tree: nodes.Template) -> None:
    """Refuse forbidden features of a template."""
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, _ALLOWED):
            what = type(node).__name__
            allowed = "fields, if, for, set and filters"
            raise SecurityError(f"line {node.lineno}: {what} is not allowed; allowed are {allowed}")
        if isinstance(node, nodes.Name) and node.name == "self":
            raise SecurityError(f"line {node.lineno}: a template may not use itself")
        if isinstance(node, nodes.For) and node.recursive:
            raise SecurityError(f"line {node.lineno}: a loop may not call itself")


def _compile(environment: _Environment, tree: nodes.Template) -> Template:
    """Compile a template with a counter in each loop."""
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, _COUNTER, [], [], None, None, lineno=loop.lineno)
    tree.set_environment(environment)
    return environment.from_string(tree)


def _words(error: Exception) -> str:
    """Return the text of an exception as one line."""
    return " ".join(str(error).split()) or type(error).__name__


def prompt_parts(prompt: str, images: Sequence[str]) -> str | list[dict[str, Any]]:
    """Return the content of a chat message.

    Parameters
    ----------
    images
        Addresses of images, which go before the text.
    """
    if not images:
        return prompt
    pictures = [{"type": "image_url", "image_url": {"url": address}} for address in images]
    return [*pictures, {"type": "text", "text": prompt}]
