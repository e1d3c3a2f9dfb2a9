"""The figures of the page on choosing are those of the benchmarks."""

from __future__ import annotations

import runpy

import pytest

from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_choosing_figures.py"))
BENCHMARKS = SCRIPT["BENCHMARKS"].read_text(encoding="utf-8")

MEASURED = """\
| figure | value | baseline | ratio | goal | met | measured | machine |
| --- | --- | --- | --- | --- | --- | --- | --- |
| race one (simulated) | 20 requests/s | 50 requests/s | 0.40 | at most 0.6 | yes | 2026-11-29 | A |
| race two (simulated) | 1,500 ms | 3,000 ms | 0.50 |  |  | 2026-11-29 | A |
| race alone | 3 s |  |  |  |  | 2026-11-29 | A |
"""


def place(pattern: str, columns: str = "baseline: before | value: after") -> str:
    return f"<!-- figures: {pattern} | {columns} -->\nold\n<!-- end of figures -->\n"


def test_the_page_has_a_table_of_each_kind() -> None:
    """A place whose markers are misspelt would be left as it is."""
    page = SCRIPT["PAGE"].read_text(encoding="utf-8")
    assert len(SCRIPT["_PLACE"].findall(page)) == page.count("<!-- figures: ") == 4


def test_the_second_value_is_compared_with_the_first() -> None:
    text = SCRIPT["page_text"](place("race *"), MEASURED)
    assert "| simulated | before | after | difference |" in text
    assert "| one | 50 requests/s | 20 requests/s | -60 % |" in text
    assert "| two | 3,000 ms | 1,500 ms | -50 % |" in text
    assert "alone" not in text
    turned = SCRIPT["page_text"](place("race one*", "value: a | baseline: b"), MEASURED)
    assert "| one | 20 requests/s | 50 requests/s | +150 % |" in turned
    assert "two" not in turned


def test_a_name_without_figures_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got figures 'none \*'"):
        SCRIPT["page_text"](place("none *"), MEASURED)
