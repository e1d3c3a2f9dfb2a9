"""Copy figures from docs/benchmarks.md to docs/choosing.md.

The page states a pattern for the names of figures, and the order and headings of their two values. This
script
writes the table between the two lines, with the difference of the second value from the first:

    <!-- figures: disaggregation * | value: aggregated | baseline: disaggregated -->
    <!-- end of figures -->

``make bench`` and ``make generate`` run this script.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from generated_files import rewrite

_DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = _DOCS / "choosing.md"
BENCHMARKS = _DOCS / "benchmarks.md"

_COLUMN = r"(value|baseline): ([^|\n]+)"
_PLACE = re.compile(
    rf"(<!-- figures: ([^|\n]+) \| {_COLUMN} \| {_COLUMN} -->\n).*?(<!-- end of figures -->)", re.DOTALL
)
#: Cells of a line in the table of benchmarks, and the cells with the two values.
_CELLS = 8
_VALUES = {"value": 1, "baseline": 2}
_SIMULATED = " (simulated)"


def page_text(page: str, benchmarks: str) -> str:
    """Return the page with new figures.

    benchmarks: The page with the measurements.
    Raises ValueError if a pattern on the page matches no figure.
    """
    return _PLACE.sub(
        lambda found: f"{found[1]}\n{_table(found[2], found.groups()[2:6], benchmarks)}\n\n{found[7]}", page
    )


def _table(pattern: str, columns: tuple[str, ...], benchmarks: str) -> str:
    """Return the matching figures, and the difference of the second value from the first."""
    first, first_head, second, second_head = columns
    rows = [row for row in map(_cells, benchmarks.splitlines()) if len(row) == _CELLS]
    found = [row for row in rows if fnmatchcase(row[0], pattern) and row[_VALUES["baseline"]]]
    if not found:
        raise ValueError(f"{PAGE}: got figures {pattern!r}, of which {BENCHMARKS} has none")
    lines = [f"| simulated | {first_head} | {second_head} | difference |", "| --- | ---: | ---: | ---: |"]
    for row in found:
        one, other = row[_VALUES[first]], row[_VALUES[second]]
        name = row[0].partition(" ")[2].removesuffix(_SIMULATED)
        lines.append(f"| {name} | {one} | {other} | {_difference(one, other)} |")
    return "\n".join(lines)


def _cells(line: str) -> list[str]:
    """Return the cells of a line of a table."""
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def _difference(one: str, other: str) -> str:
    """Return a difference such as ``+50 %``."""
    first, second = (float(each.split(maxsplit=1)[0].replace(",", "")) for each in (one, other))
    percent = round((second / first - 1) * 100)
    return f"{percent:+d} %" if percent else "none"


def main() -> None:
    """Write the page."""
    rewrite(PAGE, partial(page_text, benchmarks=BENCHMARKS.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
