"""Gives back what a request has reserved whose decision did not reach Envoy.

Envoy ends its question if the caller goes away meanwhile, or after two seconds. Then the request never
reaches a model, and its line in the log has no reservation.
"""

from __future__ import annotations

import asyncio
from typing import Final

from front_door.known_usage import KnownUsage
from front_door.ledger import Ledger, Reservation
from front_door.open_requests import OpenRequests
from front_door.store import StoreLostError
from front_door.target_load import TargetLoads

_RETRY_SECONDS: Final = 0.2


async def give_back(
    identifier: str, *, opened: OpenRequests, ledger: Ledger, loads: TargetLoads, usage: KnownUsage
) -> None:
    """Give a reservation back. It returns when the store has done it, however long it is away.

    identifier: That of the reservation. Nothing happens if the request has ended meanwhile.
    """
    request = opened.pop(identifier)
    if request is None:
        return
    facts = request.facts
    loads.ended(facts.target, is_full=False)
    for slot in request.slots:
        # With today's generation it is settled only if it is there.
        reservation = Reservation(ledger.generation_of(slot.tag), facts.day, facts.month, facts.started // 60)
        while True:
            try:
                numbers = await ledger.settle(slot, identifier, 0, 0, reservation)
                break
            except StoreLostError:
                await asyncio.sleep(_RETRY_SECONDS)
        if numbers is not None:
            usage.learn(slot, numbers)
    opened.charged(request)
