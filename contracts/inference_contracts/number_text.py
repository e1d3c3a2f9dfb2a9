"""Numbers as text for people."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3) -> str:
    """Return a number as people write it: in full, with separated thousands, and never as ``2e+03``.

    Parameters
    ----------
    value
        The number.
    digits
        Significant digits. Digits before the decimal point are never rounded away, so ``1,234`` keeps four.
        Zeros at the end of a fraction are left out.
    """
    if not value or not math.isfinite(value):
        return f"{value:.0f}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
