"""Settles requests that have ended, and hands their usage records on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from front_door.door_metrics import DoorMetrics
from front_door.ledger import Ledger
from front_door.ledger_counters import Slot
from front_door.log_line import FULL, Ended, read_line
from front_door.passed_limits import PassedLimits
from front_door.reservations import NOT_RESERVED, Signer
from front_door.store import StoreLostError
from front_door.target_load import TargetLoads
from inference_contracts.usage_record import UsageRecord

_RETRY_SECONDS: Final = 0.2

#: Returns the counters of a request: those of the caller, and that of the model if it has a budget.
Slots = Callable[[Ended], tuple[Slot, Slot | None]]


class Settlement:
    """Settles what Envoy's log says.

    slots: Finds the counters of a request.
    deliver: Takes usage records.
    """

    def __init__(
        self,
        slots: Slots,
        deliver: Callable[[UsageRecord], None],
        *,
        ledger: Ledger,
        signer: Signer,
        loads: TargetLoads,
        passed: PassedLimits,
        metrics: DoorMetrics,
        replica: str,
    ) -> None:
        self._ledger, self._signer, self._slots, self._loads = ledger, signer, slots, loads
        self._passed, self._deliver, self._metrics, self._replica = passed, deliver, metrics, replica

    async def settle(self, lines: list[bytes]) -> None:
        """Settle lines. It returns when the store has all of them, however long it is away."""
        ended = [each for line in lines if (each := read_line(line, self._signer))]
        for each in ended:
            self._loads.ended(each.text("target") or "", is_full=each.status in FULL)
        await asyncio.gather(*map(self._settle, ended))

    async def _settle(self, ended: Ended) -> None:
        promise, (team, model) = ended.promise, self._slots(ended)
        while True:
            try:
                numbers = await self._ledger.settle(team, promise.id, ended.nano, ended.tokens, promise.team)
                if model and promise.model:
                    await self._ledger.settle(model, promise.id, ended.nano, ended.tokens, promise.model)
                break
            except StoreLostError:
                await asyncio.sleep(_RETRY_SECONDS)
        if numbers is None and promise.team.generation != NOT_RESERVED:
            self._metrics.count("settled_again")
        else:
            self._metrics.count("spent_nano", ended.nano)
        if numbers:
            self._passed.learn(team, numbers)
        self._metrics.count("settled")
        self._deliver(ended.record(self._replica))
