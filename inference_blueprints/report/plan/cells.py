"""Text of single table cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from inference_contracts.units import GB, GIB

UNKNOWN: Final = "unknown"
_FEW: Final = 3


def usd(amount: float | None) -> str:
    """Return US dollars with two decimals."""
    return UNKNOWN if amount is None else f"{amount:,.2f}"


def usd_at_most(amount: float | None, bound: float | None) -> str:
    """Return US dollars, or the most that they can be if they are unknown."""
    return usd(amount) if amount is not None or bound is None else f"at most {usd(bound)}"


def usd_at_least(amount: float | None, *, is_partial: bool) -> str:
    """Return a sum of US dollars, which is a minimum if some of its parts are unknown."""
    return f"at least {usd(amount)}" if is_partial and amount is not None else usd(amount)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def few(texts: Iterable[str], separator: str = "; ") -> str:
    """Return the first texts in one line, and how many there are more."""
    found = list(texts)
    more = [f"and {len(found) - _FEW} more"] if len(found) > _FEW else []
    return separator.join([*found[:_FEW], *more])


def gib(size: int) -> str:
    """Return bytes in GiB, without the unit."""
    return f"{size / GIB:.1f}"


def gb(size: int) -> str:
    """Return bytes in GB, without the unit."""
    return f"{size / GB:.1f}"
