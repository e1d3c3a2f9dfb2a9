"""Write the table of docs/testing.md, with the last results of the suites, and the times in AGENTS.md.

The results are in tests/suite_results.json, which ``scripts/ci.py --record`` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from generated_files import fill_section, rewrite
from suites import RESULTS, SUITES

_ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = _ROOT / "docs" / "testing.md"
AGENTS: Final = _ROOT / "AGENTS.md"
#: The commands of AGENTS.md: the suite whose time is recorded, what to say besides, and when to run it.
_COMMANDS: Final = (
    ("make setup", None, "a minute; 10 seconds if the packages are cached", "first"),
    ("make lint", "lint", "half a minute with mypy's cache", "before every commit"),
    (
        "make verify",
        "verify",
        "half a minute if nothing runs beside it",
        "before every commit; if it reports a difference, run `make generate` and read the difference",
    ),
    ("make test", "test", None, "before every commit"),
    ("make run", "run", None, "after a change of stacks, charts or local serving"),
    (
        ".ci/run",
        None,
        "40 minutes if everything runs; `.ci/run --dry-run` says what it would run",
        "before a pull request",
    ),
)
_WHEN: Final = {
    "every run": "always",
    "near a change": "what is near the change, or all",
    "release": "before a release",
}


def page_text(page: str, results: Mapping[str, Any]) -> str:
    """Return the page with a new table.

    results: The last result of each suite that has one.
    """
    lines = ["| Suite | What it shows | When CI runs it | Last result |", "|---|---|---|---|"]
    for suite in SUITES:
        last = _result(results.get(suite.target))
        if suite.page:
            last += f"; [of each test]({suite.page})"
        lines.append(f"| `make {suite.target}` | {suite.shows} | {_WHEN[suite.tier]} | {last} |")
    return fill_section(page, "suites", "\n".join(lines))


def agents_text(page: str, results: Mapping[str, Any]) -> str:
    """Return AGENTS.md with new times."""
    lines = ["| Command | Time on two cores | When |", "|---|---|---|"]
    for command, suite, note, when in _COMMANDS:
        minutes = f"{results[suite]['minutes']} min" if suite and suite in results else None
        lines.append(f"| `{command}` | {'; '.join(filter(None, (minutes, note)))} | {when} |")
    return fill_section(page, "times", "\n".join(lines))


def _result(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "not recorded"
    words = "passed" if result["passed"] else "failed"
    if result["repeated"]:
        words += f", {len(result['repeated'])} repeated"
    return f"{words} in {result['minutes']} min; {result['date']}, `{result['commit']}`"


def main() -> None:
    """Write the pages."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    rewrite(PAGE, partial(page_text, results=results))
    rewrite(AGENTS, partial(agents_text, results=results))


if __name__ == "__main__":
    main()
