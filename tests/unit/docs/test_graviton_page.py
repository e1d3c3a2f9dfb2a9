"""docs/graviton.md has the last result of every test of the real llama-server."""

from __future__ import annotations

import runpy

from inference_blueprints.resources import root

RESULTS = runpy.run_path(str(root() / "scripts" / "record_llama_results.py"))
PAGE = RESULTS["PAGE"].read_text(encoding="utf-8")


def test_the_page_has_the_last_result_of_every_test() -> None:
    """It turns red if a test is added or renamed, and the page shows an older run."""
    text = PAGE.partition("<!-- results -->")[2].partition("<!-- end of results -->")[0]
    names = RESULTS["test_names"]()
    assert len(names) > 3
    for name in names:
        assert f"| {RESULTS['in_words'](name)}" in text, "run: make test-llama"
