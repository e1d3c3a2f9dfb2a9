"""Write docs/benchmarks.md from benchmarks/results.json, which ``make bench`` measures.

``make generate`` runs this script: a description of a benchmark may have changed since it was measured, and
so may the code. Whether it did is a mark on the page, and not what changed: so the first change after a
measurement changes the page, and later ones do not.
"""

from __future__ import annotations

import benchmarks
from benchmarks.harness.recorded_results import Results, discover, markdown
from inference_blueprints.resources import root


def main() -> None:
    """Write the page."""
    results = Results.read(root() / "benchmarks" / "results.json")
    page = root() / "docs" / "benchmarks.md"
    page.write_text(markdown(results, discover(benchmarks)), encoding="utf-8")


if __name__ == "__main__":
    main()
