"""The page of fleets shows what the command shows."""

from __future__ import annotations

import re
import runpy

from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_fleet_page.py"))


def test_the_page_has_both_fleets() -> None:
    """A place whose markers are misspelt would be left as it is."""
    page = SCRIPT["PAGE"].read_text(encoding="utf-8")
    assert re.findall(r"<!-- fleet (\d+) -->", page) == ["10000", "100000"]


def test_tables_are_written_anew() -> None:
    written = SCRIPT["page_text"]("<!-- fleet 8 -->\nold\n<!-- end of fleet 8 -->\n")
    assert "old" not in written
    assert "8 GPUs on 1 nodes: 1 cell of up to 1 nodes (8 GPUs)" in written
