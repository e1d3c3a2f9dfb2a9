"""Reserves what a request can cost, and settles what it has cost, for all replicas together."""

from __future__ import annotations

import asyncio
import collections
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

from front_door.ledger_counters import LedgerCounter, LedgerSlot
from front_door.ledger_scripts import CHARGE, RESERVE, RESTORE, SEED, SETTLE
from front_door.store import LedgerStore, StoreLostError, Word
from inference_contracts.door_ledger import Windows, windows_at

#: Largest difference between the clocks of store and replica at which a new day may begin.
CLOCK_SECONDS: Final = 300.0
#: Numbers of a counter in the answer to a settlement: d, D, m, M, R, n, r, t of `ledger_scripts`.
SETTLED_NUMBERS: Final = 8
#: Generation of what was not reserved before.
NOT_RESERVED: Final = "-"
#: Windows while the clocks of store and replica differ: no day begins, and the one that is open counts.
UNDECIDED: Final = Windows(0, 2**53, 0, 2**53)
#: Seconds after which callers ask again then.
_UNDECIDED_SECONDS: Final = 300
#: `Exceeded.kind` of requests at once, and seconds after which to ask again: nobody knows which ends first.
AT_ONCE: Final = 5
_RETRY_SECONDS: Final = 1
#: What a script answers besides numbers of counters.
_DONE, _OTHER_WINDOW, _EMPTY = 1, -1, -2
_ATTEMPTS: Final = 4
#: Reservations of a lost store that are given back later. Those beyond stay until this replica ends.
_MOST_DOUBTFUL: Final = 100_000

#: Returns what the checkpoint has of all counters with a tag: by key, the first second of the day and what
#: was spent in it, and the same of the day before, the month and the month before.
ReadCheckpoint = Callable[[str], Awaitable[Mapping[str, Sequence[int]]]]


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a slot has promised."""

    generation: str
    """Generation of the slot's data, or `NOT_RESERVED`."""
    day: int
    month: int
    minute: int
    """`day`, `month`: First second of the windows. `minute`: its number since 1970."""


@dataclass(slots=True)
class Unreserved:
    """Requests that had no reservation, of one slot and one day."""

    slot: LedgerSlot
    day: int
    month: int
    position: int = 0
    """Position in the log up to which they are counted."""
    nano: int = 0
    tokens: int = 0
    requests: int = 0

    def add(self, position: int, nano: int, tokens: int) -> None:
        """Add a request, later in the log than those before."""
        self.position = position
        self.nano += nano
        self.tokens += tokens
        self.requests += 1


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit that a request would pass."""

    counter: LedgerCounter
    kind: int
    """1 to 5: nano-dollars per day or month, requests or tokens per minute, requests at once."""
    limit: int
    used: int
    resets_in: int
    """Seconds until the window ends. Of requests at once, seconds after which to ask again."""


@dataclass(frozen=True, slots=True)
class OpenReservation:
    """A reservation of this replica that is not settled."""

    slot: LedgerSlot
    id: str
    nano: int
    value: str


class Ledger:
    """The counters of all replicas.

    read_checkpoint: Reads what an empty slot is filled with. None if there are no checkpoints.
    open_reservations: Returns this replica's open reservations with a tag. It registers them again if the
        store has lost them.
    known_usage: Returns what this replica knows to be spent of counters with a tag, as a checkpoint has it.
    clock: Time of this replica, in seconds since 1970.
    """

    def __init__(
        self,
        store: LedgerStore,
        zone: str,
        *,
        read_checkpoint: ReadCheckpoint | None = None,
        open_reservations: Callable[[str], Sequence[OpenReservation]] = lambda _: (),
        known_usage: Callable[[str], Mapping[str, Sequence[int]]] = lambda _: {},
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._read_checkpoint, self._clock = store, read_checkpoint, clock
        self._open, self._known = open_reservations, known_usage
        self._generations: dict[str, str] = {}
        self._filling: dict[str, asyncio.Task[None]] = {}
        self._restoring: set[asyncio.Task[None]] = set()
        self.clocks_differ = False
        self.doubtful: collections.deque[tuple[LedgerSlot, str]] = collections.deque(maxlen=_MOST_DOUBTFUL)
        self._zone: ZoneInfo
        self._windows: Windows
        self.set_zone(zone)

    @property
    def windows(self) -> Windows:
        """Day and month of the store, or `UNDECIDED`."""
        return self._windows

    def generation_of(self, tag: str) -> str:
        """Return the generation of a slot as it was last known."""
        return self._generations.get(tag, "")

    def take_time(self, store_now: int) -> None:
        """Take the store's time, which another question has told."""
        if self.clocks_differ or not self._windows.contain(store_now):
            self._set_clock(store_now)

    def set_zone(self, zone: str) -> None:
        """Take a time zone."""
        self._zone = ZoneInfo(zone)
        self._windows = windows_at(self._clock(), self._zone)

    async def reserve(
        self, slot: LedgerSlot, identifier: str, nano: int, tokens: int, value: str
    ) -> Reservation | Exceeded:
        """Reserve in all counters of a slot, or in none.

        value: What is kept with the reservation, for replicas that settle what a dead one has left.
        Raises StoreLostError.
        """
        try:
            return await self._reserve(slot, identifier, nano, tokens, value)
        except StoreLostError:
            # The store may have done it all the same.
            self.doubtful.append((slot, identifier))
            raise

    async def undo_doubtful(self) -> None:
        """Give back what the store may have reserved without our knowledge. Raises StoreLostError."""
        while self.doubtful:
            slot, identifier = self.doubtful[0]
            nothing = Reservation(
                self._generations.get(slot.tag, ""), self._windows.day, self._windows.month, 0
            )
            await self.settle(slot, identifier, 0, 0, nothing)
            self.doubtful.popleft()

    async def _reserve(
        self, slot: LedgerSlot, identifier: str, nano: int, tokens: int, value: str
    ) -> Reservation | Exceeded:
        for _ in range(_ATTEMPTS):
            now = self._windows
            words: list[Word] = [now.day, now.day_end, now.month, identifier, nano, tokens, value]
            answer = await self._store.script(RESERVE, slot.keys, words + slot.limits)  # type: ignore[operator]
            if answer[0] == _DONE:
                generation = answer[1].decode()
                if self._generations.get(slot.tag) != generation:
                    self._note(slot, generation)
                return Reservation(generation, now.day, now.month, answer[2] // 60)
            if answer[0] == _OTHER_WINDOW:
                self._set_clock(answer[1])
            elif answer[0] == _EMPTY:
                await self._fill(slot)
            else:
                _, number, kind, used, at = answer
                counter = slot.counters[number - 1]
                limit = counter.before.as_words()[kind - 1]
                return Exceeded(counter, kind, limit, int(used), self._resets_in(kind, at))
        raise StoreLostError("the store loses its data again and again")

    async def settle(
        self, slot: LedgerSlot, identifier: str, nano: int, tokens: int, reservation: Reservation
    ) -> list[int] | None:
        """Settle a reservation once.

        Return `SETTLED_NUMBERS` numbers of each counter. None if it was settled before.
        Raises StoreLostError.
        """
        words: list[Word] = [identifier, nano, tokens, reservation.generation]
        words += (reservation.day, reservation.month, reservation.minute)
        return await self._change(SETTLE, slot, slot.keys, words)

    async def charge(self, cost: Unreserved, replica: str) -> list[int] | None:
        """Add what requests without a reservation have cost, once.

        replica: Name of the replica whose log has them.
        Return as `settle` does. Raises StoreLostError.
        """
        slot = cost.slot
        keys = [slot.position_key(replica, cost.day), *slot.keys[1:]]
        words: list[Word] = [cost.position, cost.nano, cost.tokens, cost.requests, cost.day, cost.month]
        return await self._change(CHARGE, slot, keys, words)

    async def _change(
        self, script: str, slot: LedgerSlot, keys: list[str], words: list[Word]
    ) -> list[int] | None:
        for _ in range(_ATTEMPTS):
            answer: list[Any] = await self._store.script(script, keys, words)
            if answer[0] != _EMPTY:
                return [int(each) for each in answer[2:]] if answer[0] == _DONE else None
            await self._fill(slot)
        raise StoreLostError("the store loses its data again and again")

    async def _fill(self, slot: LedgerSlot) -> None:
        """Fill an empty slot from its checkpoint. Requests that come meanwhile wait for it."""
        filling = self._filling.get(slot.tag)
        if filling is None:
            filling = asyncio.create_task(self._fill_now(slot))
            self._filling[slot.tag] = filling
            filling.add_done_callback(lambda _: self._filling.pop(slot.tag))
        await asyncio.shield(filling)

    async def _fill_now(self, slot: LedgerSlot) -> None:
        rows = await self._read_checkpoint(slot.tag) if self._read_checkpoint else {}
        # Of several replicas at once, the first draws the generation.
        generation = await self._merge(slot, secrets.token_hex(4), rows)
        self._generations[slot.tag] = generation.decode()
        await self._restore(slot)

    async def _merge(self, slot: LedgerSlot, generation: str, rows: Mapping[str, Sequence[int]]) -> bytes:
        # The generation stands in the first counter, which a checkpoint may not have.
        first = slot.counters[0].key
        keys = [*slot.keys[:2], first, *(key for key in rows if key != first)]
        numbers = [number for key in keys[2:] for number in rows.get(key, (0,) * 8)]
        answer: bytes = await self._store.script(SEED, keys, [generation, *numbers])
        return answer

    def _note(self, slot: LedgerSlot, generation: str) -> None:
        """Note a new generation. If another replica has filled the slot, add what this one knows."""
        if slot.tag in self._generations:
            task = asyncio.create_task(self._restore(slot))
            self._restoring.add(task)
            task.add_done_callback(self._restored)
        self._generations[slot.tag] = generation

    def _restored(self, task: asyncio.Task[None]) -> None:
        self._restoring.discard(task)
        # Without the store it failed: that is known already.
        if not task.cancelled() and not isinstance(task.exception(), StoreLostError | None):
            task.result()

    async def _restore(self, slot: LedgerSlot) -> None:
        """Merge what this replica knows to be spent, and register what it has in progress."""
        try:
            if known := self._known(slot.tag):
                await self._merge(slot, "", known)
            for each in self._open(slot.tag):
                await self._store.script(RESTORE, each.slot.keys, [each.id, each.value, each.nano])
        except StoreLostError:
            # It is lost once more: the next answer counts as that of another generation.
            self._generations[slot.tag] = ""
            raise

    def _set_clock(self, store_now: int) -> None:
        """Take the windows of the store's time, unless this replica's clock speaks against it."""
        self.clocks_differ = abs(store_now - self._clock()) > CLOCK_SECONDS
        self._windows = UNDECIDED if self.clocks_differ else windows_at(store_now, self._zone)

    def _resets_in(self, kind: int, now: int) -> int:
        if kind == AT_ONCE:
            return _RETRY_SECONDS
        end = {1: self._windows.day_end, 2: self._windows.month_end}.get(kind, (now // 60 + 1) * 60)
        return _UNDECIDED_SECONDS if self.clocks_differ else max(1, end - now)
