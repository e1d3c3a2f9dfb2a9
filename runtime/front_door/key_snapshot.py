"""The API keys of a platform, kept fresh by what has changed in their table."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from front_door.trouble import Trouble
from front_door.wrong_keys import WrongKeys
from inference_contracts.door_key_table import KeyTable, UnreadableKey, bucket_of, buckets
from inference_contracts.door_keys import KeyRecord

#: A key that is revoked must be refused within five seconds, so changes are asked for more often.
_POLL_SECONDS: Final = 1.0
#: How often keys that have expired are forgotten: all keys are looked at.
_FORGET_SECONDS: Final = 60.0
#: Time for which a bucket is read again after its last change was seen: a query may see it before an earlier
#: one (`door_key_table`).
_UNSETTLED_SECONDS: Final = 30.0


class KeySnapshot:
    """All keys that may be valid, by their identifiers. The table keeps those that are revoked or expired.

    table: The table. None if callers have no keys.
    clock: A clock that only goes forward, in seconds.
    now: Seconds since 1970.
    """

    def __init__(
        self,
        table: KeyTable | None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._table, self._clock, self._now = table, clock, now
        self._unreadable: dict[str, str] = {}
        self._forgot_at = clock()
        self._keys: dict[str, KeyRecord] = {}
        self._seen = dict.fromkeys(buckets(), 0)
        self._unsettled_until: dict[str, float] = {}
        self._read_at: float | None = None
        #: It stays when a new configuration comes, as the keys do.
        self.wrong = WrongKeys(clock)

    def get(self, identifier: str) -> KeyRecord | None:
        """Return a key. None if there is none."""
        return self._keys.get(identifier)

    def of_the_platform(self) -> list[KeyRecord]:
        """Return the keys of the platform's own programs."""
        # A copy in one step: they are read anew in another thread.
        return [each for each in [*self._keys.values()] if each.caller is not None]

    @property
    def unreadable(self) -> int:
        """Number of keys whose items cannot be read. They are refused, the others are not."""
        return len(self._unreadable)

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
        """Read what has changed. Raises BotoCoreError or ClientError.

        One call asks for the numbers of the last changes, and only buckets with others are read: eight
        queries a second took as much processor time as the decisions on 100 requests.
        """
        assert self._table is not None  # noqa: S101 -- for the type checker
        started = self._clock()
        last = self._table.last_changes()
        # Somebody may mend an item by hand, without a new number.
        broken = {bucket_of(each) for each in self._unreadable}
        for bucket, seen in self._seen.items():
            if last.get(bucket) != seen:
                self._unsettled_until[bucket] = started + _UNSETTLED_SECONDS
            elif started >= self._unsettled_until.get(bucket, 0.0) and bucket not in broken:
                continue
            for entry in self._table.entries_after(bucket, seen):
                self._take(entry)
                self._seen[bucket] = max(self._seen[bucket], entry.change)
        self._read_at = started
        if started - self._forgot_at >= _FORGET_SECONDS:
            self._forgot_at, now = started, self._now()
            # In one step: decisions read it in another thread.
            self._keys = {name: each for name, each in self._keys.items() if each.expires > now}

    def _take(self, entry: KeyRecord | UnreadableKey) -> None:
        if isinstance(entry, UnreadableKey):
            # Nobody knows whether it was revoked.
            self._keys.pop(entry.id, None)
            if self._unreadable.get(entry.id) != entry.reason:
                self._unreadable[entry.id] = entry.reason
                event = {"event": "API key not read", "key": entry.id, "reason": entry.reason}
                print(json.dumps(event), file=sys.stderr, flush=True)
            return
        self._unreadable.pop(entry.id, None)
        if entry.revoked is None and entry.expires > self._now():
            self._keys[entry.id] = entry
        else:
            # It is refused as an unknown one is, and does not take memory for good.
            self._keys.pop(entry.id, None)
