"""Write the table of docs/testing.md: the suites of tests, when they run, and their last results.

The results are in tests/suite_results.json, which ``scripts/ci.py --record`` writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from suites import RESULTS, SUITES

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "testing.md"
_PLACE: Final = re.compile(r"(<!-- suites -->\n).*?(<!-- end of suites -->)", re.DOTALL)
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
        cells = (f"`make {suite.target}`", suite.shows, _WHEN[suite.tier], _result(results.get(suite.target)))
        lines.append(f"| {' | '.join(cells)} |")
    return _PLACE.sub(lambda found: f"{found[1]}\n{chr(10).join(lines)}\n\n{found[2]}", page)


def _result(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "not recorded"
    words = "passed" if result["passed"] else "failed"
    if result["repeated"]:
        words += f", {len(result['repeated'])} repeated"
    return f"{words} in {result['minutes']} min; {result['date']}, `{result['commit']}`"


def main() -> None:
    """Write the page."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
