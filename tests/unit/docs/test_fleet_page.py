"""The page of fleets shows what the command shows."""

from __future__ import annotations

import runpy

from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_fleet_page.py"))
PAGE = SCRIPT["PAGE"].read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    assert SCRIPT["page_text"](PAGE) == PAGE, "run: make generate"
    assert PAGE.count("<!-- fleet 10000 -->") == PAGE.count("<!-- fleet 100000 -->") == 1


def test_tables_are_written_anew() -> None:
    written = SCRIPT["page_text"]("<!-- fleet 8 -->\nold\n<!-- end of fleet 8 -->\n")
    assert "old" not in written
    assert "8 GPUs on 1 nodes: 1 cell of up to 1 nodes (8 GPUs)" in written
