"""Write the table of advisories of `docs/security.md`, from `scripts/advisories.json`.

``make generate`` runs this script.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pin_list
from advisories import advisories
from generated_files import fill_section, rewrite

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "security.md"


def page_text(page: str) -> str:
    """Return the page with a new table."""
    return fill_section(page, "advisories", "\n".join(_lines()))


def _lines() -> Iterator[str]:
    read = advisories()
    versions = {pin.name: pin.version for pin in pin_list.pins()}
    yield "| Part, pinned release | Advisory | What it is | Affected | State | Answer | Source, read on |"
    yield "|---|---|---|---|---|---|---|"
    for each in read.advisories:
        state = "**open**" if each.state == "open" else each.state
        part = f"{each.product} {versions[read.pins[each.product]]}"
        cells = (part, each.id, each.title, each.affected, state, each.answer, f"{each.source}; {each.date}")
        yield "| " + " | ".join(cell.replace("<", "&lt;") for cell in cells) + " |"
    yield ""
    yield "Nothing was found for:"
    yield ""
    yield "| Part, pinned release | What was read |"
    yield "|---|---|"
    for nothing in read.nothing_found:
        yield f"| {nothing['product']} {versions[nothing['pin']]} | {nothing['read']} |"


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
