"""The page on large peaks shows what the plan computes."""

from __future__ import annotations

import runpy

from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_real_time_figures.py"))


def test_figures_are_written_anew() -> None:
    written = SCRIPT["page_text"]("<!-- peaks -->\nold\n<!-- end of peaks -->\n")
    assert "old" not in written
    assert "| 300,000 | 274 |" in written
