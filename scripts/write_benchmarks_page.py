"""Write docs/benchmarks.md from benchmarks/results.json, which ``make bench`` measures.

``make generate`` runs this script: a description of a benchmark may have changed since it was measured.
"""

from __future__ import annotations

import json

import benchmarks
from benchmarks.harness.recorded_results import discover, markdown
from inference_blueprints.resources import root


def main() -> None:
    """Write the page."""
    results = json.loads((root() / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    descriptions = {name: each.description for name, each in discover(benchmarks).items()}
    page = root() / "docs" / "benchmarks.md"
    page.write_text(markdown(results, descriptions), encoding="utf-8")


if __name__ == "__main__":
    main()
