"""Notes beside a pinned version, which ``make outdated`` reports: its date, and why it stands there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

_Value = TypeVar("_Value")

#: Date of the release (``2026-10-23``), and the reason for the version.
PIN_NOTES = ("released", "reason")


def without_notes(entry: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return an entry of a data file without its notes, which no program needs.

    Parameters
    ----------
    entry
        The entry, with or without notes.
    """
    return {key: value for key, value in entry.items() if key not in PIN_NOTES}
