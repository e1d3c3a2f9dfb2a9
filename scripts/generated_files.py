"""How generators write: a part of a page that people also edit, tables in Markdown, and whole files."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from inference_blueprints.report.tables import TextTable


def markdown_table(table: TextTable) -> str:
    """Return a table in Markdown, with figures aligned to the right and without title and notes."""
    rules = ["---"] * len(table.names) + ["---:"] * len(table.figures)
    return "\n".join(_line(row) for row in ((*table.names, *table.figures), rules, *table.rows))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def fill_section(page: str, name: str, content: str) -> str:
    """Return a page with new content between ``<!-- name -->`` and ``<!-- end of name -->``.

    name: Name of the place. In the page, a colon and a comment may follow it.
    content: Markdown without empty lines around it.
    Raises ValueError if the page does not have exactly one such place.
    """
    place = rf"(<!-- {re.escape(name)}(?:: [^\n]*)? -->\n).*?(<!-- end of {re.escape(name)} -->)"
    text, count = re.subn(place, lambda found: f"{found[1]}\n{content}\n\n{found[2]}", page, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"got {count} places, one is needed: <!-- {name} -->, <!-- end of {name} -->")
    return text


def rewrite(page: Path, change: Callable[[str], str]) -> None:
    """Give a page the text that `change` makes of it. Generators of one page wait for each other.

    change: Returns the new text for the current one.
    Raises ValueError if `change` refuses the page.
    """
    with page.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        text = file.read()
        try:
            changed = change(text)
        except ValueError as error:
            raise ValueError(f"{page}: {error}") from error
        if changed != text:
            file.seek(0)
            file.write(changed)
            file.truncate()


def write_all(texts: Mapping[Path, str], owned: Iterable[Path]) -> None:
    """Write files, and remove what the generator owns and does not write any more.

    texts: Text of each file.
    owned: The files that exist and that only this generator writes.
    """
    for path in set(owned) - texts.keys():
        path.unlink()
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
