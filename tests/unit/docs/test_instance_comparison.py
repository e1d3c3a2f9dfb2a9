"""The page on choosing shows what `tune` prints about other instances."""

from __future__ import annotations

import runpy

from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_instance_comparison.py"))


def test_the_page_compares_two_models() -> None:
    """A place whose markers are misspelt would be left as it is."""
    page = SCRIPT["PAGE"].read_text(encoding="utf-8")
    assert len(SCRIPT["_PLACE"].findall(page)) == page.count("<!-- instances: ") == 2


def test_tables_are_written_anew() -> None:
    old = "<!-- instances: meta-llama/Llama-3.1-8B-Instruct -->\nold\n<!-- end of instances -->\n"
    written = SCRIPT["page_text"](old)
    assert "old" not in written
    assert "| g6e" in written
    assert "simulated" in written
