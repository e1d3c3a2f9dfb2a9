"""Reserves what a request can cost, and settles what it has cost, for all replicas together."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

from front_door.ledger_counters import LedgerCounter, Slot
from front_door.ledger_scripts import RESERVE, SEED, SETTLE
from front_door.store import LedgerStore, StoreLostError, Word
from front_door.windows import Windows, windows_at

#: Largest difference between the clocks of store and replica at which a new day may begin.
CLOCK_SECONDS: Final = 300.0
#: What a script answers besides numbers of counters.
_DONE, _OTHER_WINDOW, _EMPTY = 1, -1, -2

#: Returns what the checkpoint has of all counters of a slot, those of other callers too: by key, the first
#: second of the day and what was spent in it, and the same of the day before, the month and the month before.
ReadCheckpoint = Callable[[Slot], Awaitable[Mapping[str, Sequence[int]]]]


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a slot has promised."""

    generation: str
    day: int
    month: int
    minute: int
    """`day`, `month`: First second of the windows. `minute`: its number since 1970."""


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit that a request would pass."""

    counter: LedgerCounter
    kind: int
    """1 to 4: nano-dollars per day or month, requests or tokens per minute."""
    limit: int
    used: int
    resets_in: int
    """Seconds until the window ends."""


class Ledger:
    """The counters of all replicas.

    read_checkpoint: Reads what an empty slot is filled with. None if there are no checkpoints.
    clock: Time of this replica, in seconds since 1970.
    """

    def __init__(
        self,
        store: LedgerStore,
        zone: str,
        read_checkpoint: ReadCheckpoint | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._read_checkpoint, self._clock = store, read_checkpoint, clock
        self._zone = ZoneInfo(zone)
        self._windows: Windows = windows_at(clock(), self._zone)
        self.clocks_differ = False

    @property
    def windows(self) -> Windows:
        """Day and month of the store, as they were last known."""
        return self._windows

    async def reserve(
        self, slot: Slot, identifier: str, nano: int, tokens: int, value: str
    ) -> Reservation | Exceeded:
        """Reserve in all counters of a slot, or in none.

        value: What is kept with the reservation, for replicas that settle what a dead one has left.
        Raises StoreLostError.
        """
        limits = [word for counter in slot.counters for word in counter.before.as_words()]
        insists = 0
        for _ in range(4):
            now = self._windows
            words: list[Word] = [now.day, now.day_end, now.month, insists, identifier, nano, tokens]
            answer = await self._store.script(
                RESERVE, slot.keys, [*words, f"{nano} {tokens} {value}", *limits]
            )
            if answer[0] == _DONE:
                return Reservation(answer[1].decode(), now.day, now.month, answer[2] // 60)
            if answer[0] == _OTHER_WINDOW:
                insists = 0 if self._set_clock(answer[1]) else 1
            elif answer[0] == _EMPTY:
                await self._fill(slot)
            else:
                _, number, kind, used, at = answer
                counter = slot.counters[number - 1]
                limit = counter.before.as_words()[kind - 1]
                return Exceeded(counter, kind, limit, int(used), self._resets_in(kind, at))
        raise StoreLostError("the store's data vanish again and again")

    async def settle(
        self, slot: Slot, identifier: str, nano: int, tokens: int, reservation: Reservation
    ) -> list[int] | None:
        """Settle a reservation once. Return seven numbers of each counter; None if it was settled before.

        Raises StoreLostError.
        """
        words: list[Word] = [identifier, nano, tokens, reservation.generation]
        words += [reservation.day, reservation.month, reservation.minute]
        for _ in range(2):
            answer: list[Any] = await self._store.script(SETTLE, slot.keys, words)
            if answer[0] != _EMPTY:
                return [int(each) for each in answer[2:]] if answer[0] == _DONE else None
            await self._fill(slot)
        raise StoreLostError("the store's data vanish again and again")

    async def _fill(self, slot: Slot) -> None:
        """Fill an empty slot from its checkpoint. Of several replicas, the first draws the generation."""
        rows = await self._read_checkpoint(slot) if self._read_checkpoint else {}
        # The generation stands in the first counter, which a checkpoint may not have.
        keys = [slot.open_key, slot.counters[0].key]
        keys += [key for key in rows if key != slot.counters[0].key]
        numbers = [number for key in keys[1:] for number in rows.get(key, (0,) * 8)]
        await self._store.script(SEED, keys, [secrets.token_hex(4), *numbers])

    def _set_clock(self, store_now: int) -> bool:
        """Take the windows of the store's time. Return False if this replica's clock speaks against it."""
        self.clocks_differ = abs(store_now - self._clock()) > CLOCK_SECONDS
        if not self.clocks_differ:
            self._windows = windows_at(store_now, self._zone)
        return not self.clocks_differ

    def _resets_in(self, kind: int, now: int) -> int:
        end = {1: self._windows.day_end, 2: self._windows.month_end}.get(kind, (now // 60 + 1) * 60)
        return max(1, end - now)
