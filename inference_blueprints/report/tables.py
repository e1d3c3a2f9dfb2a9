"""Tables as data, and their layout in a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

# A table as data, for a terminal and an HTML page.


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text."""

    title: str
    names: tuple[str, ...]
    figures: tuple[str, ...]
    """`names`, `figures`: Headings of the columns with names, and of the columns with values. A heading
    includes its unit."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    """Sentences that explain columns, shown below the table."""


#: Characters between two columns: one space on each side, and the divider.
_GAP = 3
#: Characters between heading and value in a block, and before a heading.
_BLOCK_GAP, _INDENT = 2, 2
#: Minimum width of a column with names of several words, in characters. Below this, they are hard to read.
_NAME_WIDTH = 24
#: Width at which a sentence is easy to read, in characters.
_SENTENCE_WIDTH = 40
#: Width where the output is neither a terminal nor has a width in COLUMNS: a file or another program.
_FILE_WIDTH = 160


def table_console() -> Console:
    """Return a console for standard output that is wide enough for tables if no terminal limits it."""
    is_limited = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if is_limited else _FILE_WIDTH)


def print_table(content: TextTable, console: Console) -> None:
    """Print title, rows and notes. Values are never cut, and no line is wider than the console."""
    console.print()
    console.print(Text(content.title, style="bold"))
    print_rows(content, console)
    for note in content.notes:
        console.print(Text(note))


def print_rows(content: TextTable, console: Console) -> None:
    """Print only the rows: as columns, or as one block per row if the columns do not fit."""
    if sum(_min_widths(content)) + _gaps(content) <= console.width:
        console.print(terminal_table(content, console.width))
    else:
        for row in content.rows:
            console.print(_block(content, row, console.width))


def terminal_table(content: TextTable, width: int) -> Table:
    """Format rows as columns. Names fold, headings wrap at words, and values are never split."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    widths = _widths(content, width - _gaps(content))
    for heading, column_width in zip(content.names, widths, strict=False):
        table.add_column(heading, overflow="fold", width=column_width)
    for heading, column_width in zip(content.figures, widths[len(content.names) :], strict=True):
        table.add_column(heading, justify="right", width=column_width)
    for row in content.rows:
        table.add_row(*map(Text, row))
    return table


def _block(content: TextTable, row: Sequence[str], width: int) -> Table:
    """Format one row as lines with heading and value, below its first name."""
    block = Table(box=None, pad_edge=False, header_style="bold")
    headings = (*content.names, *content.figures)
    figures = max(map(len, row[len(content.names) :]), default=0)
    wide = max(len(heading) for heading in headings) + _INDENT
    narrow = max(len(word) for heading in headings for word in heading.split()) + _INDENT
    # Headings wrap first. A figure folds only if it is wider than the console.
    left = min(wide, max(narrow, width - _BLOCK_GAP - figures))
    is_tight = wide + _BLOCK_GAP + figures > width
    block.add_column(Text(row[0]), overflow="fold", width=left if is_tight else None)
    block.add_column(justify="right", overflow="fold", width=width - _BLOCK_GAP - left if is_tight else None)
    for index, (heading, value) in enumerate(zip(headings, row, strict=True)):
        if index and value:
            is_long_name = index < len(content.names) and len(value) > _NAME_WIDTH
            shown = Text(value, justify="left" if is_long_name else "right")
            block.add_row(Padding(Text(heading), (0, 0, 0, _INDENT)), shown)
    return block


def _gaps(content: TextTable) -> int:
    return _GAP * (len(content.names) + len(content.figures) - 1)


def _widths(content: TextTable, available: int) -> list[int]:
    """Return the column widths. If they are too wide, shrink the columns with the most spare width."""
    minimum = _min_widths(content)
    widths = [
        max(map(len, (heading, *(row[index] for row in content.rows))))
        for index, heading in enumerate((*content.names, *content.figures))
    ]
    for _ in range(sum(widths) - max(available, sum(minimum))):
        spare = [width - needed for width, needed in zip(widths, minimum, strict=True)]
        widths[spare.index(max(spare))] -= 1
    return widths


def _min_widths(content: TextTable) -> list[int]:
    """Return the minimum widths: headings wrap at words, long names fold, and values are not split."""
    minimum = []
    for index, heading in enumerate((*content.names, *content.figures)):
        cells = [len(row[index]) for row in content.rows]
        if index < len(content.names):
            cells = [_min_name_width(row[index]) for row in content.rows]
        minimum.append(max([*cells, *(len(word) for word in heading.split())], default=0))
    return minimum


def _min_name_width(name: str) -> int:
    """Return the width at which a name is easy to read: an identifier in one line, words in some lines."""
    if " " not in name:
        return len(name)
    return min(len(name), max(_NAME_WIDTH, min(len(name) * 5 // 8, _SENTENCE_WIDTH)))
