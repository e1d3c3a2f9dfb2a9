"""Prompts from templates that are well meant, wrong, or meant to harm."""

from __future__ import annotations

import time
from typing import Any

import pytest

from inference_contracts.prompt_template import Prompts, RenderingError

MAXIMUM = 10_000


def render(text: str, **row: Any) -> str:
    return Prompts(text, max_characters=MAXIMUM).render(row)


@pytest.mark.parametrize(
    ("text", "row", "prompt"),
    [
        ("Describe {{ title }}.\n", {"title": "a <b> & ü"}, "Describe a <b> & ü.\n"),
        ("{% if price %}{{ price }}{% else %}free{% endif %}", {"price": None}, "free"),
        ("{% for tag in tags %}{{ loop.index }} of {{ loop.length }} {{ tag }};{% endfor %}",
         {"tags": ["a", "b"]}, "1 of 2 a;2 of 2 b;"),
        ("{{ tags | join(', ') | upper }}", {"tags": ["a", "b"]}, "A, B"),
        ("{{ word | replace('a', 'o') }}", {"word": "banana"}, "bonono"),
        ("{{ row['two words'] }}", {"two words": 1}, "1"),
        ("{{ author.name }} {{ author['name'] }}", {"author": {"name": "X"}}, "X X"),
        ("{{ price * 2 + 1 }} {{ -price }} {{ 7 // 2 }}", {"price": 2}, "5 -2 3"),
        ("{% for key, x in facts | items %}{{ key }}={{ x }}{% endfor %}", {"facts": {"a": 1}}, "a=1"),
        ("{% set name = title | trim %}{{ name }}", {"title": " x "}, "x"),
        ("{{ rows | map(attribute='name') | join }}", {"rows": [{"name": "a"}, {"name": "b"}]}, "ab"),
        ("{{ missing | default('none') }}", {}, "none"),
        ("{{ [1, 2.5] | sum }} {{ rows | sum('n') }} {{ [] | sum(start=7) }}", {"rows": [{"n": 3}, {"n": 4}]},
         "3.5 7 7"),
    ],
)  # fmt: skip
def test_a_row_fills_its_template(text: str, row: dict[str, Any], prompt: str) -> None:
    assert render(text, **row) == prompt


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ titel }}", "'titel' is undefined"),
        ("{{ title.naem }}", "naem"),
        ("{{ title + 1 }}", "operator \\+ is only for numbers"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ title | sort | first | abs }}", "bad operand"),
    ],
)
def test_a_row_that_does_not_fit_is_explained(text: str, words: str) -> None:
    with pytest.raises(RenderingError, match=words):
        render(text, title="x")


@pytest.mark.parametrize(
    "text",
    [
        "{{ title.__class__.__mro__ }}",
        "{{ ''['__class__'] }}",
        "{{ title | attr('__class__') }}",
        "{{ rows | map(attribute='__class__') | first }}",
        "{{ title.upper() }}",
        "{{ range(9) | list }}",
        "{{ '%s' | format(1) }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for a in rows recursive %}{{ loop(rows) }}{% endfor %}",
        "{{ title ~ title }}",
        "{% set x %}{{ title }}{% endset %}",
        "{{ self }}",
        "{{ lipsum }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 'x' * 1000000000 }}",
        "{{ 'x' | center(1000000000) }}",
        "{{ title | replace('', title) | replace('', title) }}" * 3,
        "{{ rows | join(title) | replace('x', title) | replace('x', title) }}",
        "{{ [rows, rows] | sum(start=[]) }}",
        "{{ [{'a': rows}] | sum('a', []) }}",
    ],
)
def test_what_a_template_may_not_do(text: str) -> None:
    with pytest.raises(RenderingError):
        render(text, title="x" * 500, rows=["x"] * 500)


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in rows %}{% for b in rows %}{% for c in rows %}{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in rows %}{% for b in rows %}x{% endfor %}{% endfor %}",
    ],
)
def test_what_a_template_costs_is_bounded(text: str) -> None:
    begin = time.process_time()
    with pytest.raises(RenderingError, match=r"loops more than|longer than"):
        render(text, rows=list(range(10_000)))
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    "text",
    [
        "{% set a = big * big %}" + "{% set a = a * a %}" * 60 + "{{ a }}",
        "{% set a = 1e300 | int %}{{ a }}{{ a * a }}",
        "{% for each in rows %}{% set big = big * big %}{{ big * big * big * big * big }}{% endfor %}",
        "{% set a = big * big * big * big %}{{ [" + "a, " * 32 + "a] | sum }}",
    ],
)
def test_whole_numbers_are_bounded(text: str) -> None:
    """Each product doubles the digits, and 60 of them take longer than the universe."""
    begin = time.process_time()
    with pytest.raises(RenderingError, match="a whole number has more than 256 bits"):
        render(text, big=2**63 - 1, rows=[2**63 - 1] * 20)
    assert time.process_time() - begin < 1


@pytest.mark.parametrize("text", ["{{ title", "{% if x %}", "{{ x | nothing }}", "{% nothing %}"])
def test_a_text_that_is_no_template_is_refused_before_any_row(text: str) -> None:
    with pytest.raises(RenderingError, match="template: "):
        Prompts(text, max_characters=MAXIMUM)
