"""Write the table of docs/testing.md: the suites of tests, when they run, and their last results.

The results are in tests/suite_results.json, which ``scripts/ci.py --record`` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from generated_files import filled, rewrite
from suites import RESULTS, SUITES

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "testing.md"
_WHEN: Final = {
    "every run": "always",
    "near a change": "what is near the change, or all",
    "release": "before a release",
}


def page_text(page: str, results: Mapping[str, Any]) -> str:
    """Return the page with a new table.

    Parameters
    ----------
    page
        The current page.
    results
        The last result of each suite that has one.
    """
    lines = ["| Suite | What it shows | When CI runs it | Last result |", "|---|---|---|---|"]
    for suite in SUITES:
        last = _result(results.get(suite.target))
        if suite.page:
            last += f"; [of each test]({suite.page})"
        lines.append(f"| `make {suite.target}` | {suite.shows} | {_WHEN[suite.tier]} | {last} |")
    return filled(page, "suites", "\n".join(lines))


def _result(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "not recorded"
    words = "passed" if result["passed"] else "failed"
    if result["repeated"]:
        words += f", {len(result['repeated'])} repeated"
    return f"{words} in {result['minutes']} min; {result['date']}, `{result['commit']}`"


def main() -> None:
    """Write the page."""
    rewrite(PAGE, partial(page_text, results=json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
