"""Renders prompts from a team's template, in a sandbox.

A template may read a row's fields, test, filter and loop. It may not call, define or include anything. The
length of the output, the size of numbers and the number of loop rounds are limited, and so are filters that
can produce long output from short input. These limits give the reason of a refusal. They cannot bound every
cost, so `prompt_process` runs this module in a process that the operating system limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

_MOST_ITERATIONS: Final = 100_000
_COUNTER: Final = " iterations"  # a template cannot contain this name
#: Bits of a whole number. Rows have 64, and a product of rows' numbers needs a few more.
_MOST_BITS: Final = 256
_CHECKED_OPERATORS: Final = frozenset({"+", "-", "*", "/", "//", "%"})

_SAFE_FILTERS: Final = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last"),
    *("length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "round", "select"),
    *("selectattr", "sort", "string", "title", "tojson", "trim", "truncate", "unique", "upper"),
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
        """Return the prompt of a row."""
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
        self.filters |= {"join": self._join, "replace": self._replace, "sum": self._sum, _COUNTER: _counted}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise SecurityError(f"operator {operator} is only for numbers; write strings one after the other")
        if operator == "*":
            _check_number(left, right)
        return _checked(super().call_binop(context, operator, left, right))

    def _join(self, values: Iterable[Any], delimiter: str = "") -> str:
        words = [str(value) for value in values]
        self._check_size(len(words) * len(delimiter) + sum(map(len, words)))
        return delimiter.join(words)

    def _sum(self, values: Iterable[Any], attribute: str | None = None, start: Any = 0) -> Any:
        """Add numbers. Jinja's own filter would also join lists, again and again."""
        of = make_attrgetter(self, attribute) if attribute is not None else None
        total = start
        for value in values:
            number = of(value) if of else value
            if not (isinstance(total, int | float) and isinstance(number, int | float)):
                raise SecurityError("sum is only for numbers")
            total = _checked(total + number)
        return total

    def _replace(self, text: str, old: str, new: str) -> str:
        self._check_size(len(text) + text.count(old) * len(new))
        return text.replace(old, new)

    def _check_size(self, size: int) -> None:
        if size > self._most:
            raise SecurityError(f"the output of a filter is longer than {self._most} characters")


def _check_number(*factors: Any) -> None:
    """Refuse factors whose product is too large, before it is computed."""
    if sum(each.bit_length() for each in factors if isinstance(each, int)) > _MOST_BITS:
        raise SecurityError(f"a whole number has more than {_MOST_BITS} bits")


def _checked(number: Any) -> Any:
    """Return a number unless it is too large."""
    _check_number(number)
    return number


@pass_context
def _counted(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    """Count the rounds of a loop."""
    counter: _Counter = context[_COUNTER]
    return counter.count(values)


def template_fault(text: str) -> str | None:
    """Return why a template cannot be used, with the line in it; None if it can."""
    environment = _Environment(most_characters=0)
    try:
        tree = environment.parse(text)
        _check(tree)
        _compile(environment, tree)
    except TemplateSyntaxError as error:
        return f"line {error.lineno}: {_words(error).rstrip('.')}"
    except (TemplateError, RecursionError) as error:
        return _words(error)
    return None


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
