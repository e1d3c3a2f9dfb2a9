"""Limits that refuse only once they are passed (``enforce: after``), without a question to the store.

Every settlement tells what all replicas have spent together, so a replica learns of a passed limit from its
own traffic of that caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from front_door.ledger import Exceeded
from front_door.ledger_counters import LedgerCounter, Slot
from front_door.windows import Windows

#: Numbers of a counter in the answer to a settlement.
_NUMBERS = 7


class PassedLimits:
    """What has been used of each counter, as far as this replica knows."""

    def __init__(self) -> None:
        self._used: dict[str, tuple[int, ...]] = {}

    def learn(self, slot: Slot, numbers: Sequence[int]) -> None:
        """Take the numbers of a slot's counters after a settlement."""
        for index, counter in enumerate(slot.counters):
            if not counter.after.are_none:
                self._used[counter.key] = tuple(numbers[index * _NUMBERS : (index + 1) * _NUMBERS])

    def passed(self, slot: Slot, windows: Windows, now: float) -> Exceeded | None:
        """Return the first limit that has been passed. None if there is none."""
        for counter in slot.counters:
            used = None if counter.after.are_none else self._used.get(counter.key)
            if used and (found := _passed(counter, used, windows, int(now))):
                return found
        return None


def _passed(counter: LedgerCounter, used: tuple[int, ...], windows: Windows, now: int) -> Exceeded | None:
    day, of_day, month, of_month, minute, requests, tokens = used
    minute_end = (now // 60 + 1) * 60
    rows = (
        (day >= windows.day, of_day, windows.day_end),
        (month >= windows.month, of_month, windows.month_end),
        (minute == now // 60, requests, minute_end),
        (minute == now // 60, tokens, minute_end),
    )
    for kind, ((counts, number, end), limit) in enumerate(
        zip(rows, counter.after.as_words(), strict=True), 1
    ):
        if counts and 0 <= limit <= number:
            return Exceeded(counter, kind, limit, number, max(1, end - now))
    return None
