"""Settles the reservations of which no log will tell: of a replica that has died, or of an Envoy that has.

If only the policy dies, its Envoy goes on, and the next policy process reads on in the log: no request is an
orphan then.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Final

from front_door.envoy_admin import ask_envoy
from front_door.ledger_counters import Budgets
from front_door.open_requests import OpenRequests
from front_door.replicas import Replicas
from front_door.settlement import Settlement
from front_door.store import LedgerStore, StoreLostError
from front_door.stored_requests import FindSlots, slot_of, stored_requests
from front_door.target_load import TargetLoads
from front_door.trouble import Trouble

_SWEEP_SECONDS: Final = 2.0
#: Time for the last lines of an Envoy that has ended to be read.
_LAST_LINES_SECONDS: Final = 2.0


class OrphanSweep:
    """Looks for orphans.

    budgets: Returns the budgets of today's configuration.
    slots: Finds the counters of a request, with the limits that its key has of its own.
    envoy_admin: Address of Envoy's administration. Empty: crashes of Envoy are not seen.
    """

    def __init__(
        self,
        budgets: Callable[[], Budgets],
        slots: FindSlots,
        *,
        store: LedgerStore,
        replicas: Replicas,
        settlement: Settlement,
        opened: OpenRequests,
        loads: TargetLoads,
        envoy_admin: str,
    ) -> None:
        self._budgets, self._slots = budgets, slots
        self._store, self._replicas = store, replicas
        self._settlement, self._opened, self._loads = settlement, opened, loads
        self._envoy_admin = envoy_admin

    async def run(self) -> None:
        """Look, until it is cancelled."""
        dead, envoy = Trouble("dead replicas not settled"), Trouble("requests of a dead Envoy not settled")
        while True:
            try:
                if self._replicas.is_first and (names := self._replicas.dead()):
                    await self.sweep(names)
                dead.is_over()
            except StoreLostError as error:
                dead.report(error)
            try:
                if self._envoy_admin:
                    await self._look_at_envoy()
                envoy.is_over()
            except (StoreLostError, OSError, ValueError, KeyError, TimeoutError) as error:
                envoy.report(error)
            await asyncio.sleep(_SWEEP_SECONDS)

    async def sweep(self, dead: set[str]) -> None:
        """Settle what dead replicas have left. Raises StoreLostError."""
        for tag in self._budgets().tags:
            async for identifier, _, facts in stored_requests(self._store, tag):
                if facts.replica not in dead:
                    continue
                if slot := slot_of(self._slots, facts, tag):
                    await self._settlement.settle_orphan(slot, identifier, facts)
        for name in dead:
            await self._replicas.forget(name)

    async def _look_at_envoy(self) -> None:
        """Settle this replica's own requests whose Envoy has died: another one has started since.

        The connections of the dead one are closed. A living Envoy closes some too, but is older than the
        requests about which it asked.
        """
        if not self._opened.of_closed_links():
            return
        answer = json.loads(await ask_envoy(self._envoy_admin, "GET", "/server_info"))
        # Envoy tells whole seconds, the difference of two times that are cut off: up to one too many.
        uptime = float(str(answer["uptime_all_epochs"]).rstrip("s")) - 1
        started = time.monotonic() - uptime
        await asyncio.sleep(_LAST_LINES_SECONDS)
        for identifier, request in self._opened.of_closed_links():
            if request.admitted < started and self._opened.pop(identifier):
                self._loads.ended(request.facts.target, is_full=False)
                for slot in request.slots:
                    await self._settlement.settle_orphan(slot, identifier, request.facts)
