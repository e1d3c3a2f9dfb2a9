"""Settles requests that have ended, and hands their usage records on."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable, Iterable
from typing import Final

from front_door.costs import CostBound
from front_door.door_metrics import DoorMetrics
from front_door.given_back import give_back
from front_door.known_usage import KnownUsage
from front_door.ledger import NOT_RESERVED, Ledger, Reservation, Unreserved
from front_door.ledger_counters import LedgerSlot
from front_door.log_follower import LogLine
from front_door.log_line import EndedRequest, read_line, request_without_decision
from front_door.open_requests import OpenRequest, OpenRequests, RequestFacts
from front_door.reservations import Signer
from front_door.store import StoreLostError
from front_door.stored_requests import FindSlots
from front_door.target_load import TargetLoads
from inference_contracts.usage_record import UsageRecord

_RETRY_SECONDS: Final = 0.2
#: Answers of a model of which the densest prompt is remembered.
_ANSWERS: Final = 1000
#: What is added to the densest prompt of these answers.
_MARGIN: Final = 1.1


class PromptDensity:
    """Tokens that prompts have, of those that were reserved for them."""

    def __init__(self) -> None:
        self._seen: dict[str, collections.deque[float]] = {}

    def learn(self, model: str, bound: int, tokens: int) -> None:
        """Take an answer with usage."""
        if bound:
            seen = self._seen.setdefault(model, collections.deque(maxlen=_ANSWERS))
            seen.append(tokens / bound)

    def most(self, model: str, bound: int) -> int:
        """Return the most tokens that a prompt is expected to have."""
        seen = self._seen.get(model)
        return bound if not seen else min(bound, int(bound * max(seen) * _MARGIN) + 1)


class Settlement:
    """Settles what Envoy's log says, and what nobody's log will say.

    slots: Finds the counters of a request.
    deliver: Takes usage records, each with the position of its line.
    """

    def __init__(
        self,
        slots: FindSlots,
        deliver: Callable[[UsageRecord, int], None],
        *,
        ledger: Ledger,
        signer: Signer,
        loads: TargetLoads,
        usage: KnownUsage,
        opened: OpenRequests,
        metrics: DoorMetrics,
        replica: str,
    ) -> None:
        self._slots, self._deliver = slots, deliver
        self._ledger, self._signer, self._loads, self._usage = ledger, signer, loads, usage
        self._opened, self._metrics, self._replica = opened, metrics, replica
        self.density = PromptDensity()

    async def settle(self, lines: list[LogLine], is_doubtful: bool) -> None:  # noqa: FBT001 -- of a callback
        """Settle lines. It returns when the store has all of them, however long it is away.

        is_doubtful: Some may have been settled before a restart. Then what has no reservation is settled line
            by line, because a sum could hold lines of both kinds.
        """
        found = [(line, ended) for line in lines if (ended := read_line(line.content, self._signer))]
        undecided = [each for line in lines if (each := request_without_decision(line.content))]
        await asyncio.gather(*map(self._give_back, undecided))
        known = []
        sums: dict[tuple[str | int, ...], Unreserved] = {}
        reserved = []
        for line, ended in found:
            request = self._note_end(ended)
            if request:
                known.append(request)
            promise = ended.promise
            pairs = zip(self._slots_of(ended), (promise.team, promise.model), strict=True)
            for slot, reservation in pairs:
                if slot is None:
                    continue
                if reservation.generation != NOT_RESERVED:
                    reserved.append(self._settle(slot, ended, reservation, is_first=request is not None))
                    continue
                whole = Unreserved(slot, reservation.day, reservation.month)
                if is_doubtful:
                    whole.add(line.end, ended.cost.nano, ended.cost.tokens)
                    await self._charge(whole)
                else:
                    sums.setdefault((*slot.keys, whole.day), whole).add(
                        line.end, ended.cost.nano, ended.cost.tokens
                    )
        await asyncio.gather(*reserved, *map(self._charge, sums.values()))
        for request in known:
            self._opened.charged(request)
        for line, ended in found:
            self._metrics.count("settled")
            self._metrics.answered(ended.status, ended.added_seconds)
            self._deliver(ended.record(self._replica), line.start)

    async def settle_orphan(self, slot: LedgerSlot, identifier: str, facts: RequestFacts) -> bool:
        """Settle a reservation of which no log will tell. Return False if it was settled meanwhile.

        Nobody knows what the request has used. It is charged the most: its output at its maximum, its prompt
        as densely as the densest of the last answers of the model.
        """
        bound = facts.bound
        prompt = self.density.most(facts.model, bound.input_tokens)
        used = CostBound(prompt, bound.output_tokens, bound.images)
        nano = used.nano(facts.prices)
        # With today's generation it is settled only if it is there.
        reservation = Reservation(
            self._ledger.generation_of(slot.tag), facts.day, facts.month, facts.started // 60
        )
        numbers = await self._ledger.settle(slot, identifier, nano, used.tokens, reservation)
        if numbers is None:
            return False
        self._usage.learn(slot, numbers)
        if slot.counters[0].scope == "team":
            self._metrics.count("orphans")
            self._metrics.count("spent_nano", nano)
            self._deliver(facts.record(identifier, nano, prompt), 0)
        return True

    async def _give_back(self, request: str) -> None:
        identifier = self._opened.reservation_of(request)
        if identifier:
            await give_back(
                identifier, opened=self._opened, ledger=self._ledger, loads=self._loads, usage=self._usage
            )

    def _note_end(self, ended: EndedRequest) -> OpenRequest | None:
        """Note that a request has ended. Return it if this process has admitted it and not settled it."""
        request = self._opened.pop(ended.promise.id)
        if request:
            self._loads.ended(ended.text("target") or "", is_full=ended.says_full)
        if ended.cost.basis == "usage":
            self.density.learn(ended.text("model") or "", ended.promise.input_tokens, ended.cost.input_tokens)
        return request

    def _slots_of(self, ended: EndedRequest) -> Iterable[LedgerSlot | None]:
        text = ended.text
        return self._slots(text("team") or "", text("project"), text("key"), text("model") or "")

    async def _settle(
        self, slot: LedgerSlot, ended: EndedRequest, reservation: Reservation, *, is_first: bool
    ) -> None:
        # A store that has lost its last writes does not know the reservation. No generation means: charge it
        # all the same. An answer that is lost leaves it open whether the store has done it.
        sure = reservation
        if is_first:  # not by `replace`, which takes three times as long
            sure = Reservation("", reservation.day, reservation.month, reservation.minute)
        while True:
            try:
                numbers = await self._ledger.settle(
                    slot, ended.promise.id, ended.cost.nano, ended.cost.tokens, sure
                )
                break
            except StoreLostError:
                sure = reservation
                await asyncio.sleep(_RETRY_SECONDS)
        self._settled(slot, numbers, ended.cost.nano)

    async def _charge(self, whole: Unreserved) -> None:
        while True:
            try:
                numbers = await self._ledger.charge(whole, self._replica)
                break
            except StoreLostError:
                await asyncio.sleep(_RETRY_SECONDS)
        self._settled(whole.slot, numbers, whole.nano)

    def _settled(self, slot: LedgerSlot, numbers: list[int] | None, nano: int) -> None:
        if numbers is None:
            self._metrics.count("settled_again")
            return
        self._usage.learn(slot, numbers)
        if slot.counters[0].scope == "team":
            self._metrics.count("spent_nano", nano)
