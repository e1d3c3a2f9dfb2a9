"""Java renders what Jinja2 renders, for templates that nobody wrote."""

from __future__ import annotations

import json
import random
import subprocess
from typing import Any

import pytest

from inference_contracts.prompt_template import (
    Prompts,
    RenderingError,
    template_fault,
    template_tree,
)
from tests.java.conftest import java_command

TEMPLATES = 200
MAX_CHARACTERS = 5_000
VALUES: dict[str, Any] = {
    "events": [
        {"page": "red Shoes", "seconds": 12, "price": 59.9, "tags": ["a", "B", "é👟"]},
        {"page": "bags's", "seconds": 3, "price": 20, "tags": []},
        {"page": "", "seconds": -40, "price": None, "tags": ["a"]},
    ],
    "word": " Café 👟 ab-cd\n",
    "big": 9_007_199_254_740_993,
    "real": 2.675,
    "yes": True,
    "nothing": None,
    "facts": {"b": 1, "A": "x", "c": {"d": [1, 2.5]}},
}
LITERALS = (
    *(
        "1",
        "0",
        "-7",
        "2.5",
        "1e16",
        "1e-7",
        "3",
        "10",
        "true",
        "false",
        "none",
        "''",
        "'a'",
        "'B c'",
        '"it\'s"',
    ),
    *(
        "'é👟'",
        "'12'",
        "'3.9'",
        "[]",
        "[1, 2]",
        "[3, 1, 2.0]",
        "['b', 'A', 'b']",
        "(1, 'a')",
        "{}",
        "{'a': 1, 'b': [2]}",
    ),
)
NAMES = (
    "events",
    "word",
    "big",
    "real",
    "yes",
    "nothing",
    "facts",
    "row",
    "missing",
    "x",
    "events[0]",
    "facts.c.d",
)
FILTERS = (
    *(
        "abs",
        "capitalize",
        "count",
        "default('z')",
        "default(1, true)",
        "dictsort",
        "dictsort(true, 'value')",
        "first",
    ),
    *(
        "float",
        "int",
        "int(5)",
        "int(base=16)",
        "items",
        "join",
        "join(', ')",
        "last",
        "length",
        "list",
        "lower",
        "max",
    ),
    *(
        "min",
        "max(attribute='seconds')",
        "map('upper')",
        "map(attribute='page')",
        "map(attribute='tags.0', default='-')",
    ),
    *(
        "reject('odd')",
        "rejectattr('price')",
        "replace('a', 'bb')",
        "replace('', '.')",
        "reverse",
        "round",
        "round(1)",
    ),
    *("round(-1)", "round(2, 'ceil')", "select", "select('gt', 1)", "selectattr('seconds', 'gt', 0)", "sort"),
    *(
        "sort(reverse=true)",
        "sort(attribute='seconds')",
        "sort(attribute='tags,page')",
        "string",
        "sum",
        "sum('seconds')",
    ),
    *(
        "title",
        "tojson",
        "tojson(indent=1)",
        "trim",
        "trim('a ')",
        "truncate(5)",
        "truncate(4, true, '', 0)",
        "unique",
    ),
    *("unique(attribute='price')", "upper", "wordcount", "map('length')", "map('string')", "unique(true)"),
)
TESTS = (
    *(
        "defined",
        "undefined",
        "none",
        "boolean",
        "true",
        "integer",
        "float",
        "number",
        "string",
        "mapping",
        "sequence",
    ),
    *(
        "iterable",
        "lower",
        "upper",
        "even",
        "odd",
        "divisibleby(3)",
        "in([1, 'a'])",
        "eq(1)",
        "ne('a')",
        "lt(2)",
        "ge(2)",
    ),
)


class Templates:
    """Templates at random. A seed gives the same ones again."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable, not secret

    def template(self) -> str:
        return "".join(self._statement(1) for _ in range(self._random.randint(1, 2)))

    def _statement(self, depth: int) -> str:
        one = self._random.choice
        if depth == 0 or self._random.random() < 0.5:
            shown = self._expression(self._random.randint(1, 2))
            return f"{one(['', ' ', 'text '])}{{{{{one(['', '-'])} {shown} }}}}"
        body = self._statement(depth - 1)
        dash = one(["", "-"])
        match one(["if", "for", "for if", "set"]):
            case "if":
                other = self._statement(depth - 1)
                return f"{{% if {self._expression(1)} {dash}%}} {body} {{%{dash} else %}}{other}{{% endif %}}"
            case "for":
                place = one(["loop.index", "loop.revindex0", "loop.previtem | default('-')", "loop.length"])
                values = self._expression(1)
                return f"{{% for x in {values} %}}{{{{ {place} }}}}{body}{{% else %}}none{{% endfor %}}"
            case "for if":
                return f"{{% for x in {self._expression(1)} if {self._expression(1)} %}}{body}{{% endfor %}}"
        return f"{{% set x = {self._expression(1)} %}}{body}"

    def _expression(self, depth: int) -> str:
        one = self._random.choice
        if depth == 0:
            return one(NAMES) if self._random.random() < 0.6 else one(LITERALS)
        left, right = self._expression(depth - 1), self._expression(depth - 1)
        forms = {
            "filter": f"({left}) | {one(FILTERS)}",
            "filters": f"({left}) | {one(FILTERS)} | {one(FILTERS)}",
            "test": f"({left}) is {one(['', 'not '])}{one(TESTS)}",
            "operator": f"({left}) {one(['+', '-', '*', '/', '//', '%', 'and', 'or'])} ({right})",
            "compare": f"({left}) {one(['==', '!=', '<', '<=', '>', '>=', 'in', 'not in'])} ({right})",
            "choice": f"({left} if {right} else {self._expression(0)})",
            "item": f"({left})[{one(['0', '-1', '1', repr('page'), repr('a')])}]",
            "slice": f"({left})[{one(['1:', ':1', '::-1', '-2:', '::2', '0:0'])}]",
            "list": f"[{left}, {right}]",
        }
        return forms[one(list(forms))]


def outcome(text: str) -> str | None:
    """Return the prompt of Python; None if it refuses."""
    try:
        return Prompts(text, max_characters=MAX_CHARACTERS).render(VALUES)
    except RenderingError:
        return None


@pytest.mark.parametrize("seed", [1, 2])
def test_random_templates(seed: int) -> None:
    templates = Templates(seed)
    texts = [
        text for text in (templates.template() for _ in range(TEMPLATES)) if template_fault(text) is None
    ]
    assert len(texts) > TEMPLATES * 0.9
    questions = [
        {"tree": template_tree(text), "values": VALUES, "mostCharacters": MAX_CHARACTERS} for text in texts
    ]
    found = subprocess.run(
        java_command("prompt-template", "inferenceblueprints.prompts.Probe"),
        input="".join(json.dumps(each) + "\n" for each in questions),
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    ).stdout.splitlines()
    expected = [outcome(text) for text in texts]
    assert sum(each is not None for each in expected) > len(texts) / 10
    answers = [json.loads(line).get("prompt") for line in found]
    assert len(answers) == len(texts)
    assert [case for case in zip(texts, expected, answers, strict=True) if case[1] != case[2]] == []
