"""Write the tables of docs/refusals.md: what AWS refuses and the emulator refuses too, with sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from generated_files import fill_section, markdown_table, rewrite

from inference_blueprints.report.tables import TextTable
from inference_blueprints.resources import root
from inference_local.emulator.refusals import Refusal
from inference_local.emulator.request_refusals import refusals

PAGE: Final = root() / "docs" / "refusals.md"


def page_text(page: str, rows: Mapping[str, Refusal]) -> str:
    """Return the page with new tables."""
    names = ("call or resource type", "refused", "error", "source")
    quoted = _cells(row for row in rows.values() if row.is_quoted)
    page = fill_section(page, "refusals", markdown_table(TextTable("", names, (), quoted)))
    stated = _cells(row for row in rows.values() if not row.is_quoted)
    return fill_section(page, "stated", markdown_table(TextTable("", names, (), stated)))


def _cells(rows: Iterable[Refusal]) -> tuple[tuple[str, ...], ...]:
    ordered = sorted(rows, key=lambda row: (row.call, row.when))
    return tuple((row.call, row.when.replace("|", "\\|"), f"`{row.code}`", row.source) for row in ordered)


def main() -> None:
    """Rewrite the page."""
    rewrite(PAGE, partial(page_text, rows=refusals()))


if __name__ == "__main__":
    main()
