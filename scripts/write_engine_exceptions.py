"""Write the table of docs/real-engines.md with the settings that a processor cannot take.

The table is between ``<!-- exceptions -->`` and ``<!-- end of exceptions -->``. ``make generate`` runs this
script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from inference_blueprints.targets.local.vllm_cpu.exceptions import described

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "real-engines.md"
_PLACE: Final = re.compile(r"(<!-- exceptions -->\n).*?(<!-- end of exceptions -->)", re.DOTALL)


def page_text(page: str) -> str:
    """Return the page with a new table.

    Parameters
    ----------
    page
        The current page.
    """
    table = "\n".join(_table())
    return _PLACE.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", page)


def _table() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| Setting of the worker | On this machine | Reason |"
    yield "|---|---|---|"
    for row in described():
        yield f"| {' | '.join(row)} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
