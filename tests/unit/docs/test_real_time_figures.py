"""The page on large peaks shows what the plan computes."""

from __future__ import annotations

import runpy

from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_real_time_figures.py"))
PAGE = SCRIPT["PAGE"].read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    assert SCRIPT["page_text"](PAGE) == PAGE, "run: make generate"
    assert PAGE.count("<!-- peaks -->") == 1


def test_figures_are_written_anew() -> None:
    written = SCRIPT["page_text"]("<!-- peaks -->\nold\n<!-- end of peaks -->\n")
    assert "old" not in written
    assert "| 300,000 | 334 |" in written
