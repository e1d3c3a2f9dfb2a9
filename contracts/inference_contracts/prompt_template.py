"""Renders prompts from a team's template, in a sandbox.

A template may read a row's fields, test, filter and loop. It may not call, define or include anything. The
length of the output, the size of numbers and the number of loop rounds are limited, and so are filters that
can produce long output from short input. These limits give the reason of a refusal. They cannot bound every
cost, so `prompt_process` runs this module in a process that the operating system limits.

Streaming jobs run on Java. `template_tree` returns a template's checked syntax tree, which the Java class
`PromptTemplate` (`runtime/java/prompt-template`) evaluates. Only Jinja2 reads templates, so both languages
agree on their syntax. `tests/runtime/templates/conformance.json` holds both to the same prompts. Therefore
templates see data only, never Python's objects: no methods, no generators, no escaped strings.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, Final

from jinja2 import (
    StrictUndefined,
    Template,
    TemplateError,
    TemplateSyntaxError,
    Undefined,
    nodes,
    pass_context,
)
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from jinja2.utils import htmlsafe_json_dumps

_MAX_ITERATIONS: Final = 100_000
_COUNTER: Final = " iterations"  # a template cannot contain this name
#: Bits of a whole number. Rows have 64, and a product of rows' numbers needs a few more.
_MAX_BITS: Final = 256
_CHECKED_OPERATORS: Final = frozenset({"+", "-", "*", "/", "//", "%"})

#: Levels of expressions and statements in each other.
_MAX_DEPTH: Final = 100
_MAX_PRECISION: Final = 30
_MAX_INDENT: Final = 16
_BASES: Final = (2, 8, 10, 16)

_SAFE_FILTERS: Final = (
    *(
        "abs",
        "capitalize",
        "count",
        "d",
        "default",
        "dictsort",
        "first",
        "float",
        "last",
        "length",
        "list",
        "lower",
    ),
    *("max", "min", "sort", "string", "title", "trim", "upper", "wordcount"),
)
#: Filters of Jinja that return generators.
_LAZY_FILTERS: Final = ("items", "map", "reject", "rejectattr", "reverse", "select", "selectattr", "unique")
_OWN_FILTERS: Final = ("int", "join", "replace", "round", "sum", "tojson", "truncate")
_FILTERS: Final = frozenset((*_SAFE_FILTERS, *_LAZY_FILTERS, *_OWN_FILTERS))
_TESTS: Final = (
    *("boolean", "defined", "divisibleby", "eq", "equalto", "==", "even", "false", "float", "ge", ">=", "gt"),
    *(
        "greaterthan",
        ">",
        "in",
        "integer",
        "iterable",
        "le",
        "<=",
        "lessthan",
        "lower",
        "lt",
        "<",
        "mapping",
        "ne",
    ),
    *("!=", "none", "number", "odd", "sequence", "string", "true", "undefined", "upper"),
)
_LOOP: Final = frozenset(
    (
        "index",
        "index0",
        "revindex",
        "revindex0",
        "first",
        "last",
        "length",
        "depth",
        "depth0",
        "previtem",
        "nextitem",
    )
)

_ALLOWED: Final = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Assign),
    *(nodes.If, nodes.For, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not),
    *(nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test, nodes.Tuple, nodes.List),
    *(nodes.Dict, nodes.Pair, nodes.Keyword, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv),
    *(nodes.Mod, nodes.Neg, nodes.Pos),
)


_WRONG_VALUES: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class RenderingError(Exception):
    """No prompt can be rendered from a template or a row. The message names the reason."""


class Prompts:
    """A compiled template.

    Raises RenderingError if it is not a valid template, or uses a forbidden feature.
    """

    def __init__(self, text: str, *, max_characters: int) -> None:
        self._maximum = max_characters
        environment = _Environment(max_characters)
        try:
            self._template = _compile(environment, _checked_tree(environment, text))
        except (TemplateError, RecursionError) as error:
            raise RenderingError(f"template: {_words(error)}") from error

    def render(self, row: Mapping[str, Any]) -> str:
        """Return the prompt of a row."""
        values = {"row": row, **row, _COUNTER: _Counter(_MAX_ITERATIONS)}
        pieces, size = [], 0
        try:
            for piece in self._template.generate(values):
                size += len(piece)
                if size > self._maximum:
                    raise RenderingError(f"template: the prompt is longer than {self._maximum} characters")
                pieces.append(piece)
        # Exceptions of operators and filters for values of the wrong type.
        except (TemplateError, *_WRONG_VALUES) as error:
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
                raise SecurityError(f"it loops more than {_MAX_ITERATIONS} times")
            yield value


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, without features that can produce very much output."""

    intercepted_binops = _CHECKED_OPERATORS

    def __init__(self, max_characters: int) -> None:
        super().__init__(undefined=StrictUndefined, keep_trailing_newline=True)
        self._maximum = max_characters
        self.globals.clear()
        self.filters = {name: FILTERS[name] for name in _SAFE_FILTERS}
        self.filters |= {name: _eager(FILTERS[name]) for name in _LAZY_FILTERS}
        self.filters |= {name: getattr(self, f"_{name}") for name in _OWN_FILTERS}
        self.filters[_COUNTER] = _counted
        self.tests: dict[str, Any] = {name: TESTS[name] for name in _TESTS}
        self.tests |= {name: _of_numbers(self.tests[name]) for name in ("divisibleby", "even", "odd")}

    def getattr(self, obj: Any, attribute: str) -> Any:
        return (
            super().getattr(obj, attribute) if isinstance(obj, LoopContext) else self.getitem(obj, attribute)
        )

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item of data. Jinja's own method would also return attributes, such as methods."""
        if isinstance(obj, dict | list | str | tuple | Undefined):
            try:
                return obj[argument]
            except (LookupError, TypeError):
                pass
        return self.undefined(obj=obj, name=argument)

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

    def _int(self, value: Any, default: Any = 0, base: int = 10) -> Any:
        if base not in _BASES:
            raise SecurityError(f"int reads numbers of base {', '.join(map(str, _BASES))}")
        return FILTERS["int"](value, default, base)

    def _round(self, value: Any, precision: int = 0, method: str = "common") -> Any:
        if not -_MAX_PRECISION <= precision <= _MAX_PRECISION:
            raise SecurityError(f"round goes to at most {_MAX_PRECISION} digits")
        return FILTERS["round"](value, precision, method)

    def _tojson(self, value: Any, indent: int | None = None) -> str:
        if not 0 <= (indent or 0) <= _MAX_INDENT:
            raise SecurityError(f"tojson indents by at most {_MAX_INDENT} spaces")
        return str(htmlsafe_json_dumps(value, json.dumps, sort_keys=True, indent=indent))

    def _truncate(
        self, text: str, length: int = 255, killwords: Any = None, end: str = "...", leeway: Any = None
    ) -> str:
        if not isinstance(text, str):
            raise SecurityError("truncate is only for strings")
        if length < len(end) or (leeway or 0) < 0:
            raise SecurityError("truncate needs a length that its end fits into, and a leeway of 0 or more")
        shortened: str = FILTERS["truncate"](self, text, length, killwords, end, leeway)
        return shortened

    def _replace(self, text: str, old: str, new: str) -> str:
        if not all(isinstance(each, str) for each in (text, old, new)):
            raise SecurityError("replace is only for strings")
        self._check_size(len(text) + text.count(old) * len(new))
        return text.replace(old, new)

    def _check_size(self, size: int) -> None:
        if size > self._maximum:
            raise SecurityError(f"the output of a filter is longer than {self._maximum} characters")


def _check_number(*factors: Any) -> None:
    """Refuse factors whose product is too large, before it is computed."""
    if sum(each.bit_length() for each in factors if isinstance(each, int)) > _MAX_BITS:
        raise SecurityError(f"a whole number has more than {_MAX_BITS} bits")


def _checked(number: Any) -> Any:
    """Return a number unless it is too large."""
    _check_number(number)
    return number


@pass_context
def _counted(context: Context, values: Iterable[Any]) -> list[Any]:
    """Count the rounds of a loop."""
    counter: _Counter = context[_COUNTER]
    return list(counter.count(values))


def _eager(lazy: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that returns a list instead of a generator."""

    @wraps(lazy)
    def filter_(*arguments: Any, **keywords: Any) -> Any:
        found = lazy(*arguments, **keywords)
        return found if isinstance(found, str) else list(found)

    return filter_


def _of_numbers(test: Callable[..., Any]) -> Callable[..., Any]:
    """Return a test that refuses strings, whose remainder would be Python's way to format them."""

    def only_numbers(*values: Any) -> Any:
        if not all(isinstance(each, int | float | Undefined) for each in values):
            raise SecurityError("only a number can be even, odd or divisible")
        return test(*values)

    return only_numbers


def template_fault(text: str) -> str | None:
    """Return why a template cannot be used, with the line in it; None if it can."""
    environment = _Environment(max_characters=0)
    try:
        _compile(environment, _checked_tree(environment, text))
    except TemplateSyntaxError as error:
        return f"line {error.lineno}: {_words(error).rstrip('.')}"
    except (TemplateError, RecursionError) as error:
        return _words(error)
    return None


def template_tree(text: str) -> dict[str, Any]:
    """Return a template's syntax tree as JSON, for the Java class `PromptTemplate`.

    Raises RenderingError if it is not a valid template, or uses a forbidden feature.
    """
    if (fault := template_fault(text)) is not None:
        raise RenderingError(f"template: {fault}")
    return {"source": text, "body": _dumped(_checked_tree(_Environment(max_characters=0), text).body)}


def _dumped(part: Any) -> Any:
    """Return a part of a syntax tree as JSON. Nodes keep the names of Jinja."""
    if isinstance(part, nodes.Node):
        fields = {name: _dumped(value) for name, value in part.iter_fields()}
        return {"kind": type(part).__name__, "line": part.lineno, **fields}
    return [_dumped(each) for each in part] if isinstance(part, list | tuple) else part


def _checked_tree(environment: _Environment, text: str) -> nodes.Template:
    """Return a template's syntax tree, without forbidden features."""
    tree = environment.parse(text)
    _check_depth(tree)
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, _ALLOWED):
            what = type(node).__name__
            allowed = "fields, if, for, set and filters"
            raise SecurityError(f"line {node.lineno}: {what} is not allowed; allowed are {allowed}")
        if (fault := _fault(node)) is not None:
            raise SecurityError(f"line {node.lineno}: {fault}")
        if isinstance(node, nodes.CondExpr) and node.expr2 is None:
            node.expr2 = nodes.Const("", lineno=node.lineno)
    loops = [node.node for node in tree.find_all(nodes.Getattr) if node.attr in _LOOP]
    for name in tree.find_all(nodes.Name):
        if name.name == "loop" and not any(name is each for each in loops):
            raise SecurityError(
                f"line {name.lineno}: of loop, a template may only read {', '.join(sorted(_LOOP))}"
            )
    return tree


def _fault(node: nodes.Node) -> str | None:
    """Return what a node of an allowed kind does that is forbidden."""
    fault = None
    match node:
        case nodes.Name(name="self"):
            fault = "a template may not use itself"
        case nodes.For(recursive=True):
            fault = "a loop may not call itself"
        case nodes.Filter(name=name) if name not in _FILTERS:
            fault = f"No filter named {name!r}; allowed are {', '.join(sorted(_FILTERS))}"
        case nodes.Test(name=name) if name not in _TESTS:
            fault = f"No test named {name!r}; allowed are {', '.join(sorted(_TESTS))}"
        case nodes.Filter() | nodes.Test() if node.dyn_args or node.dyn_kwargs:
            fault = "arguments may not be unpacked"
        case nodes.Pair(key=key) if not (isinstance(key, nodes.Const) and isinstance(key.value, str)):
            fault = "a key of a mapping must be a string"
        case nodes.Const(value=float(value)) if not math.isfinite(value):
            fault = "a number is too large"
    return fault


def _check_depth(tree: nodes.Template) -> None:
    level: list[nodes.Node] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in node.iter_child_nodes()]
        if not level:
            return
    raise SecurityError(f"line {level[0].lineno}: more than {_MAX_DEPTH} levels are in each other; use set")


def _compile(environment: _Environment, tree: nodes.Template) -> Template:
    """Compile a template with a counter in each loop."""
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, _COUNTER, [], [], None, None, lineno=loop.lineno)
    tree.set_environment(environment)
    return environment.from_string(tree)


def _words(error: Exception) -> str:
    """Return the text of an exception as one line."""
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    print(json.dumps(template_tree(sys.argv[1])))
