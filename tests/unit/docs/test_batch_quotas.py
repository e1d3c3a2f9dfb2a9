"""The page's tables of quotas are what the plan counts."""

from __future__ import annotations

import runpy

from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_batch_quotas.py"))


def test_tables_are_written_anew() -> None:
    written = SCRIPT["page_text"]("<!-- quotas -->\nold\n<!-- end of quotas -->\n")
    assert "old" not in written
    assert "| 3,472.2 | 120 |" in written
    assert "| S3: Parts of an upload | 2,480 parts | 10,000 parts | 25 % | no |" in written
