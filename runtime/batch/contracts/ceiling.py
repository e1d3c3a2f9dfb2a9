"""A ceiling of the capacity shift, as the scheduler and the workers of batch read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference_contracts.shift_names import CEILING_AT, CEILING_PLACES, CEILING_SECONDS


def places_under(ceiling: Mapping[str, Any] | None, *, now: float) -> int:
    """Return the places that the jobs of a model may have together now.

    Without a ceiling, or with an old one, nobody knows what interactive requests need, and they go first.

    ceiling: Its record; None if there is none.
    now: Seconds since 1970.
    """
    if ceiling is None or abs(now - float(ceiling[CEILING_AT])) > CEILING_SECONDS:
        return 0
    return max(0, int(ceiling[CEILING_PLACES]))
