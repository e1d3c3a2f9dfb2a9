"""Requests that this replica has admitted and that have not ended.

What is kept in the store with a reservation lets other replicas settle it when this one has died.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from front_door.costs import CostBound
from front_door.ledger import OpenReservation
from front_door.ledger_counters import LedgerSlot
from inference_contracts.door_configuration import DoorPrices
from inference_contracts.usage_record import UsageRecord

#: Made once: `json.dumps` would make one for each request.
_JSON: Final = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What the settlement of a request needs if no log tells of it."""

    replica: str
    request: str
    """Identifier of the request."""
    team: str
    project: str | None
    key: str | None
    model: str
    target: str
    bound: CostBound
    prices: DoorPrices
    day: int
    month: int
    """`day`, `month`: First second of the windows in which it was admitted."""
    started: int
    """Time at which it was admitted, in seconds since 1970."""

    def as_text(self) -> str:
        """Return them as text."""
        bound, prices = self.bound, self.prices
        return _JSON.encode(
            [
                *(self.replica, self.request, self.team, self.project, self.key, self.model, self.target),
                *(bound.input_tokens, bound.output_tokens, bound.images),
                *(prices.input_token, prices.output_token, prices.image),
                *(self.day, self.month, self.started),
            ]
        )

    @classmethod
    def from_text(cls, text: str) -> RequestFacts:
        """Return the facts of a text. Raises ValueError if it is another."""
        values = json.loads(text)
        if not isinstance(values, list) or len(values) != _VALUES:
            raise ValueError(f"not the facts of a request: {text[:200]}")
        names = ("replica", "request", "team", "project", "key", "model", "target")
        return cls(
            **dict(zip(names, values, strict=False)),
            bound=CostBound(*values[7:10]),
            prices=DoorPrices(*values[10:13]),
            day=values[13],
            month=values[14],
            started=values[15],
        )

    def record(self, reservation: str, nano: int, input_tokens: int) -> UsageRecord:
        """Return the usage record of a request of which no log tells.

        reservation: Identifier of its reservation.
        nano: What it is charged.
        """
        started = datetime.fromtimestamp(self.started, UTC)
        return UsageRecord(
            id=self.request,
            time=started.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            team=self.team,
            project=self.project,
            key=self.key,
            caller=None,
            model=self.model,
            target=self.target,
            path="",
            status=0,
            input_tokens=input_tokens,
            output_tokens=self.bound.output_tokens,
            reserved_nano=self.bound.nano(self.prices),
            cost_nano=nano,
            basis="reservation",
            milliseconds=0,
            stream=False,
            replica=self.replica,
            reservation=reservation,
            day=self.day,
            month=self.month,
        )


_VALUES: Final = 16


@dataclass(slots=True)
class EnvoyLink:
    """A connection of Envoy."""

    is_open: bool = True


@dataclass(slots=True)
class OpenRequest:
    """A request in progress."""

    facts: RequestFacts
    nano: int
    value: str
    """What is kept with its reservations."""
    slots: tuple[LedgerSlot, ...]
    """Slots in which it has a reservation."""
    link: EnvoyLink
    """The connection over which Envoy asked."""
    is_unchecked: bool
    """Whether no budget was asked, because the store did not answer."""
    admitted: float
    """Time of its admission, on a clock that only goes forward."""


class OpenRequests:
    """The requests in progress, by the identifiers of their reservations."""

    def __init__(self) -> None:
        self._open: dict[str, OpenRequest] = {}
        self._by_request: dict[str, str] = {}
        self.unchecked_nano = 0
        """Highest cost of the requests that were admitted without the store and are not charged yet."""

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._open

    def add(self, identifier: str, request: OpenRequest) -> None:
        """Note an admitted request."""
        self._open[identifier] = request
        self._by_request[request.facts.request] = identifier
        if request.is_unchecked:
            self.unchecked_nano += request.nano

    def has_in(self, identifier: str, slot: LedgerSlot) -> bool:
        """Return whether a request is noted, and note that it has a reservation in a slot too."""
        found = self._open.get(identifier)
        if found is None:
            return False
        if slot.tag not in {each.tag for each in found.slots}:
            found.slots = (*found.slots, slot)
        return True

    def charged(self, request: OpenRequest) -> None:
        """Note that the store has what a request has cost."""
        if request.is_unchecked:
            self.unchecked_nano -= request.nano

    def pop(self, identifier: str) -> OpenRequest | None:
        """Return a request that has ended, and forget it. None if it is unknown."""
        found = self._open.pop(identifier, None)
        if found and self._by_request.get(found.facts.request) == identifier:
            del self._by_request[found.facts.request]
        return found

    def reservation_of(self, request: str) -> str | None:
        """Return the identifier of the reservation of a request. None if it is unknown.

        request: Identifier that Envoy has given it.
        """
        return self._by_request.get(request)

    def with_tag(self, tag: str) -> Sequence[OpenReservation]:
        """Return the open reservations in a slot of the store."""
        return [
            OpenReservation(slot, identifier, each.nano, each.value)
            for identifier, each in self._open.items()
            for slot in each.slots
            if slot.tag == tag
        ]

    def of_closed_links(self) -> list[tuple[str, OpenRequest]]:
        """Return the requests about which Envoy asked over a connection that is closed."""
        return [(identifier, each) for identifier, each in self._open.items() if not each.link.is_open]
