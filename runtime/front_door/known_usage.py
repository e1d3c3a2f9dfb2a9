"""What replicas have used together, as far as this one knows from its settlements.

Limits that refuse only once they are passed (``enforce: after``) are checked here, without a question to the
store: every settlement tells what all replicas have spent, so a replica learns of a passed limit from its own
traffic of that caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from front_door.ledger import SETTLED_NUMBERS, Exceeded
from front_door.ledger_counters import LedgerCounter, LedgerSlot
from inference_contracts.door_ledger import Windows

_MOST_COUNTERS: Final = 100_000


class KnownUsage:
    """What has been used of each counter with a limit."""

    def __init__(self) -> None:
        self._used: dict[str, tuple[LedgerCounter, Sequence[int]]] = {}

    def learn(self, slot: LedgerSlot, numbers: Sequence[int]) -> None:
        """Take the numbers of a slot's counters after a settlement."""
        for index, counter in enumerate(slot.counters):
            if counter.is_limited:
                own = numbers[index * SETTLED_NUMBERS : (index + 1) * SETTLED_NUMBERS]
                self._used[counter.key] = (counter, own)
        if len(self._used) > _MOST_COUNTERS:
            self._used.clear()

    def with_tag(self, tag: str) -> dict[str, Sequence[int]]:
        """Return what has been spent of each counter with a tag, by its key, as a checkpoint has it."""
        found: dict[str, Sequence[int]] = {}
        for key, (_, (day, of_day, month, of_month, *_)) in self._used.items():
            if key == tag or key.startswith(f"{tag}:"):
                found[key] = (day, of_day, 0, 0, month, of_month, 0, 0)
        return found

    def passed(self, slot: LedgerSlot, windows: Windows, now: float) -> Exceeded | None:
        """Return the first limit that has been passed. None if there is none."""
        for counter in slot.refusing_after:
            if known := self._used.get(counter.key):
                found = _passed(counter, known[1], windows, int(now))
                if found:
                    return found
        return None

    def shares(self, windows: Windows) -> Iterator[tuple[LedgerCounter, str, float]]:
        """Yield counters with the window of a limit of money, and the share of it that is spent."""
        for counter, (day, of_day, month, of_month, *_) in self._used.values():
            daily = counter.before.stricter(counter.after).nano_per_day
            monthly = counter.before.stricter(counter.after).nano_per_month
            if daily > 0:
                yield counter, "day", of_day / daily if day >= windows.day else 0.0
            if monthly > 0:
                yield counter, "month", of_month / monthly if month >= windows.month else 0.0


def _passed(counter: LedgerCounter, used: Sequence[int], windows: Windows, now: int) -> Exceeded | None:
    day, of_day, month, of_month, _, minute, requests, tokens = used
    minute_end = (now // 60 + 1) * 60
    rows = (
        (day >= windows.day, of_day, windows.day_end),
        (month >= windows.month, of_month, windows.month_end),
        (minute == now // 60, requests, minute_end),
        (minute == now // 60, tokens, minute_end),
    )
    for kind, ((counts, number, end), limit) in enumerate(
        # Requests in progress are counted before, in the store.
        zip(rows, counter.after.as_words()[: len(rows)], strict=True),
        1,
    ):
        if counts and 0 <= limit <= number:
            return Exceeded(counter, kind, limit, number, max(1, end - now))
    return None
