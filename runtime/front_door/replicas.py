"""What the replicas tell each other through the store, and which of them have died."""

from __future__ import annotations

import asyncio
import collections
import json
import time
from collections.abc import Callable, Mapping
from typing import Final

from front_door.ledger_scripts import EXCHANGE
from front_door.store import LedgerStore, StoreLostError

_KEY: Final = "door:{//replicas}"
#: How often a replica tells its numbers.
EXCHANGE_SECONDS: Final = 0.5
#: Age of numbers that do not count any more: the replica does not answer the store, or has ended.
_FRESH_SECONDS: Final = 3
#: Silence after which the requests of a replica are settled by others. Longer than a policy process takes to
#: start again: one that comes back settles its own.
DEAD_SECONDS: Final = 10


class Replicas:
    """The replicas, as this one sees them.

    own: Returns the requests in progress at this replica, by target.
    take: Takes those of all others, and the store's time.
    clock: A clock that only goes forward, in seconds.
    """

    def __init__(
        self,
        store: LedgerStore,
        name: str,
        own: Callable[[], Mapping[str, int]],
        take: Callable[[Mapping[str, float], int], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._name, self._own, self._take, self._clock = store, name, own, take, clock
        self._silent_since: dict[str, float] = {}
        self.live: tuple[str, ...] = ()
        self.is_first = False
        """Whether it has the first name of the live ones: it does what one of them has to do."""

    async def run(self) -> None:
        """Tell and hear, until it is cancelled."""
        while True:
            try:
                await self.exchange()
            except StoreLostError:
                # Nothing is known of the others: their last numbers are better than none.
                self.is_first = False
            await asyncio.sleep(EXCHANGE_SECONDS)

    async def exchange(self) -> None:
        """Tell and hear once. Raises StoreLostError."""
        own = json.dumps({cluster: number for cluster, number in self._own().items() if number})
        now, *rows = await self._store.script(EXCHANGE, [_KEY], [self._name, own])
        others: collections.Counter[str] = collections.Counter()
        live = []
        for raw, age, text in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
            name = raw.decode()
            if age <= _FRESH_SECONDS:
                live.append(name)
                if name != self._name:
                    others.update(json.loads(text))
            if age <= DEAD_SECONDS:
                self._silent_since.pop(name, None)
            else:
                self._silent_since.setdefault(name, self._clock())
        heard = {raw.decode() for raw in rows[::3]}
        self._silent_since = {name: at for name, at in self._silent_since.items() if name in heard}
        self.live, self.is_first = tuple(sorted(live)), min(live, default="") == self._name
        self._take(others, now)

    def dead(self) -> set[str]:
        """Return the replicas that have died.

        The store's clock alone does not say so: it may jump. They were silent for this one's clock too.
        """
        return {name for name, at in self._silent_since.items() if self._clock() - at > _FRESH_SECONDS}

    async def forget(self, name: str) -> None:
        """Forget a replica whose requests are settled. Raises StoreLostError."""
        await self._store.ask(_KEY, "HDEL", _KEY, name)
        self._silent_since.pop(name, None)
