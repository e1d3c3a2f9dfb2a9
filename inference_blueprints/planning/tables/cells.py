"""Text of single table cells."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "unknown"
_GIB = 1024**3
_GB = 1e9


def usd(amount: float | None) -> str:
    """Return US dollars with two decimals."""
    return UNKNOWN if amount is None else f"{amount:,.2f}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def gib(size: int) -> str:
    """Return bytes in GiB, without the unit."""
    return f"{size / _GIB:.1f}"


def gb(size: int) -> str:
    """Return bytes in GB, without the unit."""
    return f"{size / _GB:.1f}"
