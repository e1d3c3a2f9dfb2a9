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


def slots_of(budgets: Budgets, facts: RequestFacts) -> list[LedgerSlot]:
    """Return the slots in which a request may have a reservation."""
    of_model = budgets.of_model(facts.model)
    found = [budgets.of_caller(facts.team, facts.project, facts.key)]
    return [*found, of_model] if of_model else found


async def take_over(
    replica: str,
    budgets: Callable[[], Budgets],
    *,
    store: LedgerStore,
    opened: OpenRequests,
    loads: TargetLoads,
    started: float,
) -> None:
    """Note the requests that an earlier process of this replica has admitted, before their lines are read.

    It returns when the store has answered, however long it is away: no line can be settled before.

    replica: Name of this replica.
    started: Time at which this process has started, in seconds since 1970.
    """
    while True:
        try:
            for tag in budgets().tags:
                async for identifier, value, facts in stored_requests(store, tag):
                    if facts.replica != replica or facts.started > started or identifier in opened:
                        continue
                    opened.add(identifier, _open_request(value, facts, budgets()))
                    loads.began(facts.target)
        except StoreLostError:
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


def _open_request(value: str, facts: RequestFacts, budgets: Budgets) -> OpenRequest:
    slots = tuple(each for each in slots_of(budgets, facts) if each.reserves)
    # Envoy asked over a connection that is closed: if Envoy has died too, no line will come. The time of the
    # admission was cut off to whole seconds.
    link = EnvoyLink(is_open=False)
    admitted = time.monotonic() - (time.time() - facts.started - 1)
    return OpenRequest(
        facts, int(value.split(" ", 1)[0]), value, slots, link, is_unchecked=False, admitted=admitted
    )
