"""The page's table of differences between engines is the one that is tested."""

from __future__ import annotations

import runpy

from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_engine_differences.py"))


def test_the_table_is_written_anew() -> None:
    written = SCRIPT["page_text"]("<!-- differences -->\nSTALE\n<!-- end of differences -->\n")
    assert "STALE" not in written
    assert "| `logprobs` | none, whatever the request asks for |" in written
