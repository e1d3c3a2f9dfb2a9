"""The API keys of a platform, kept fresh by what has changed in their table."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from front_door.trouble import Trouble
from front_door.wrong_keys import WrongKeys
from inference_contracts.door_key_table import KeyTable, buckets
from inference_contracts.door_keys import KeyRecord

#: A key that is revoked must be refused within five seconds, so changes are asked for more often.
_POLL_SECONDS: Final = 1.0


class KeySnapshot:
    """All keys, by their identifiers.

    table: The table. None if callers have no keys.
    clock: A clock that only goes forward, in seconds.
    """

    def __init__(self, table: KeyTable | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._table, self._clock = table, clock
        self._keys: dict[str, KeyRecord] = {}
        self._seen = dict.fromkeys(buckets(), 0)
        self._read_at: float | None = None
        #: It stays when a new configuration comes, as the keys do.
        self.wrong = WrongKeys(clock)

    def get(self, identifier: str) -> KeyRecord | None:
        """Return a key. None if there is none."""
        return self._keys.get(identifier)

    @property
    def age_seconds(self) -> float:
        """Time since the keys were last read. Infinite before the first time, 0 without a table."""
        if self._table is None:
            return 0.0
        return float("inf") if self._read_at is None else self._clock() - self._read_at

    async def run(self) -> None:
        """Keep the keys fresh, until it is cancelled."""
        trouble = Trouble("API keys not read")
        while self._table is not None:
            try:
                await asyncio.to_thread(self.refresh)
                trouble.is_over()
            except (BotoCoreError, ClientError) as error:
                trouble.report(error)
            await asyncio.sleep(_POLL_SECONDS)

    def refresh(self) -> None:
        """Read what has changed. Raises BotoCoreError or ClientError."""
        assert self._table is not None  # noqa: S101 -- for the type checker
        started = self._clock()
        for bucket in self._seen:
            for record in self._table.changes_after(bucket, self._seen[bucket]):
                if record.revoked is None:
                    self._keys[record.id] = record
                else:
                    # It is refused as an unknown one is, and does not take memory for good.
                    self._keys.pop(record.id, None)
                self._seen[bucket] = max(self._seen[bucket], record.change)
        self._read_at = started
