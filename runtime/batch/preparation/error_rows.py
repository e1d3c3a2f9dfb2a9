"""Rows of the error file for lines that never run, in OpenAI's format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

_SHOWN_IN_A_REASON = 10


def row(*, line: int, custom_id: str | None, code: str, reasons: Sequence[str]) -> bytes:
    """Return a row, with its line end.

    custom_id: The team's name for the line, if it has one.
    code: Stable error code for programs.
    reasons: All problems of the line.
    """
    shown = [*reasons[:_SHOWN_IN_A_REASON]]
    if len(reasons) > len(shown):
        shown.append(f"and {len(reasons) - len(shown)} more")
    error = {"code": code, "message": "; ".join(shown), "line": line}
    document = {"id": None, "custom_id": custom_id, "response": None, "error": error}
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def renumber_rows(rows: Iterable[bytes], lines_before: int) -> Iterator[bytes]:
    """Renumber the rows of a segment to lines of the whole input.

    rows: Complete rows, as `row` returns them.
    lines_before: Number of the input's lines before the segment.
    """
    for each in rows:
        document = json.loads(each)
        document["error"]["line"] += lines_before
        yield json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
