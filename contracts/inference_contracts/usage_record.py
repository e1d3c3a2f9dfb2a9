"""One line of usage per request that the front door has answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inference_contracts.json_record import JsonRecord

#: How the cost is known: by the usage that the engine reported, by what a cut stream had reported until then,
#: the whole reservation because an answer had no usage, or nothing because there was no answer.
CostBasis = Literal["usage", "cut", "reservation", "none"]


@dataclass(frozen=True, slots=True)
class UsageRecord(JsonRecord):
    """A request, who made it, and what it cost."""

    id: str
    """Identifier of the request, which the caller has too: the header ``x-request-id``."""
    time: str
    """Time at which it began, as ISO 8601 in UTC."""
    team: str
    project: str | None
    key: str | None
    """Identifier of the API key. None for callers with a token."""
    caller: str | None
    """Subject of the caller's token. None for callers with an API key."""
    model: str
    """Public name of the model."""
    target: str
    """Cluster that answered."""
    path: str
    status: int
    """`path`, `status`: Path of the request, and status of the answer."""
    input_tokens: int
    output_tokens: int
    reserved_nano: int
    cost_nano: int
    """`reserved_nano`, `cost_nano`: What was reserved before and what it cost, in nano-dollars."""
    basis: CostBasis
    milliseconds: int
    """Time from the first byte of the request to the last of the answer."""
    stream: bool
    replica: str
    """Replica of the door."""
    reservation: str = ""
    """Identifier of the reservation in the ledger, unique in the platform. Firehose may deliver a record
    twice (Amazon Data Firehose Developer Guide, "Data delivery failure handling"): readers count one."""
    user: str | None = None
    """End user, as the request names it in its field `user`. Callers choose it."""
    day: int = 0
    month: int = 0
    """`day`, `month`: First second, since 1970, of the day and the month of the ledger that were charged."""
