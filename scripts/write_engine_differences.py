"""Write the table of docs/real-engines.md with the differences between simulated and real engines.

The table is between ``<!-- differences -->`` and ``<!-- end of differences -->``. It contains the differences
that `tests/engines/test_simulated_against_real.py` expects. ``make generate`` runs this script.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from generated_files import fill_section, rewrite

_ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = _ROOT / "docs" / "real-engines.md"
_DIFFERENCES: Final = _ROOT / "tests" / "engines" / "comparison" / "differences.json"
_COLUMNS: Final = {
    "what": "What differs",
    "simulated": "Simulated",
    "real": "Real",
    "consequence": "If you trust a run with simulated engines",
}


def page_text(page: str) -> str:
    """Return the page with a new table."""
    return fill_section(page, "differences", "\n".join(_table()))


def _table() -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| {' | '.join(_COLUMNS.values())} |"
    yield f"|{'---|' * len(_COLUMNS)}"
    for difference in json.loads(_DIFFERENCES.read_text(encoding="utf-8")):
        yield f"| {' | '.join(difference[key] for key in _COLUMNS)} |"


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
