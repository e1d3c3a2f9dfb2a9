"""The page's table of exceptions is the one that workers get."""

from __future__ import annotations

import runpy

from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_engine_exceptions.py"))
PAGE = SCRIPT["PAGE"].read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    assert SCRIPT["page_text"](PAGE) == PAGE, "run: make generate"
    assert PAGE.count("<!-- exceptions -->") == PAGE.count("<!-- architectures -->") == 1


def test_the_table_is_written_anew() -> None:
    written = SCRIPT["page_text"]("<!-- exceptions -->\nSTALE\n<!-- end of exceptions -->\n")
    assert "STALE" not in written
    assert "| `--load-format` | `dummy` |" in written
