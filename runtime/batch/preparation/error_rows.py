"""Rows of the error file for lines that never run, in OpenAI's shape."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

_SHOWN_IN_A_REASON = 10


def row(*, line: int, custom_id: str | None, code: str, reasons: Sequence[str]) -> bytes:
    """Return a row, with its end.

    Parameters
    ----------
    line
        The line's number.
    custom_id
        The team's own name for it, where it has one.
    code
        A word for programs.
    reasons
        What is wrong, all of it.
    """
    shown = [*reasons[:_SHOWN_IN_A_REASON]]
    if len(reasons) > len(shown):
        shown.append(f"and {len(reasons) - len(shown)} more")
    error = {"code": code, "message": "; ".join(shown), "line": line}
    document = {"id": None, "custom_id": custom_id, "response": None, "error": error}
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def moved(rows: Iterable[bytes], lines_before: int) -> Iterator[bytes]:
    """Iterate over the rows of a segment, with the lines of the whole input.

    Parameters
    ----------
    rows
        Rows as `row` made them, each whole.
    lines_before
        Lines of the input before the segment.
    """
    for each in rows:
        document = json.loads(each)
        document["error"]["line"] += lines_before
        yield json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
