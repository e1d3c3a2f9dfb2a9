"""Requests in progress as the store has them: what a process that has died leaves to others, and to the next.

If only the policy dies, its Envoy goes on, and the next process reads on in the log. It takes over what its
predecessor has admitted: a line of the log ends each, also those whose decision did not reach Envoy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from front_door.ledger_counters import Budgets, LedgerSlot
from front_door.open_requests import EnvoyLink, OpenRequest, OpenRequests, RequestFacts
from front_door.store import LedgerStore, StoreLostError
from front_door.target_load import TargetLoads

_PAGE: Final = 500
_RETRY_SECONDS: Final = 0.2


async def stored_requests(store: LedgerStore, tag: str) -> AsyncIterator[tuple[str, str, RequestFacts]]:
    """Yield identifier, value and facts of each open reservation in a slot. Raises StoreLostError."""
    key = LedgerSlot.of(tag, ()).keys[0]
    cursor: Any = b"0"
    while True:
        cursor, rows = await store.ask(tag, "HSCAN", key, cursor, "COUNT", _PAGE)
        for identifier, value in zip(rows[::2], rows[1::2], strict=True):
            text = value.decode()
            try:
                yield identifier.decode(), text, RequestFacts.from_text(text.split(" ", 2)[2])
            except (ValueError, IndexError, TypeError):
                continue
        if cursor == b"0":
            return


#: Returns the counters of a request: those of the caller, and that of the model if it has a budget.
FindSlots = Callable[[str, str | None, str | None, str], tuple[LedgerSlot, LedgerSlot | None]]


def slot_of(find: FindSlots, facts: RequestFacts, tag: str) -> LedgerSlot | None:
    """Return the counters with a tag in which a request has a reservation. None if there are none now."""
    slots = find(facts.team, facts.project, facts.key, facts.model)
    return next((each for each in slots if each and each.tag == tag), None)


async def take_over(
    replica: str,
    budgets: Callable[[], Budgets],
    slots: FindSlots,
    *,
    store: LedgerStore,
    opened: OpenRequests,
    loads: TargetLoads,
    started: float,
) -> None:
    """Note the requests that an earlier process of this replica has admitted, before their lines are read.

    It returns when the store has answered, however long it is away: no line can be settled before.

    replica: Name of this replica.
    slots: Finds the counters of a request, with the limits that its key has of its own.
    started: Time at which this process has started, in seconds since 1970.
    """
    while True:
        try:
            for tag in budgets().tags:
                async for identifier, value, facts in stored_requests(store, tag):
                    if facts.replica != replica or facts.started > started:
                        continue
                    slot = slot_of(slots, facts, tag)
                    if slot and not opened.has_in(identifier, slot):
                        opened.add(identifier, _open_request(value, facts, slot))
                        loads.began(facts.target)
        except StoreLostError:
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


def _open_request(value: str, facts: RequestFacts, slot: LedgerSlot) -> OpenRequest:
    # Envoy asked over a connection that is closed: if Envoy has died too, no line will come. The time of the
    # admission was cut off to whole seconds.
    link = EnvoyLink(is_open=False)
    admitted = time.monotonic() - (time.time() - facts.started - 1)
    return OpenRequest(
        facts, int(value.split(" ", 1)[0]), value, (slot,), link, is_unchecked=False, admitted=admitted
    )
