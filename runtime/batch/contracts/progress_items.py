"""Progress of jobs, in a table of its own: one item per shard, written by its worker, and one per job.

============= =========================================================================================
Attribute     Meaning
============= =========================================================================================
``job``       partition key: the job's identifier
``shard``     sort key: the shard's name, or `WHOLE_JOB`
``attempt``   attempt at the job in which this was counted
``answered``  lines that have ended: of two items of one attempt the one with more is the later one
others        the fields of `ShardProgress` or of `JobSize`, numbers
``expires``   when DynamoDB deletes it (time to live), in seconds since 1970
============= =========================================================================================

An item is always written whole and never incremented, so a repeated write is harmless. It replaces only an
earlier item, so a worker that hung and resumed changes nothing. Ten thousand items take about a megabyte,
which is one or two pages of a query. The same number of objects in S3 would take thirty pages of a list.

One more item per model is the turn at running suspects (`batch.worker.suspects`): ``holder`` has it
``until`` a time in seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from batch.contracts.shard import Usage
from inference_contracts.batch_keys import suspects_of_model
from inference_contracts.batch_names import EXPIRY_ATTRIBUTE, JOB_ATTRIBUTE, SHARD_ATTRIBUTE
from inference_contracts.json_record import JsonRecord
from inference_contracts.shift_names import CEILING_AT, CEILING_PLACES, CEILING_SECONDS

# A ceiling of the capacity shift, as the scheduler and the workers of batch read it.


def places_under(ceiling: Mapping[str, Any] | None, *, now: float) -> int:
    """Return the places that the jobs of a model may have together now.

    Without a ceiling, or with an old one, nobody knows what interactive requests need, and they go first.

    ceiling: Its record; None if there is none.
    now: Seconds since 1970.
    """
    if ceiling is None or abs(now - float(ceiling[CEILING_AT])) > CEILING_SECONDS:
        return 0
    return max(0, int(ceiling[CEILING_PLACES]))


# Counts of the answers that were published to the signal store.


@dataclass(frozen=True, slots=True)
class Published(JsonRecord):
    """Counts of the published answers of a part, or of all parts of a job."""

    written: int = 0
    """Answers that are in the store."""
    superseded: int = 0
    """Answers that lost against those of a later job, or that the store already had."""
    unfit: int = 0
    """Answers that cannot be a signal: without text, or with a custom_id that is too long for a key."""

    def __add__(self, other: Published) -> Published:
        return Published(
            self.written + other.written, self.superseded + other.superseded, self.unfit + other.unfit
        )


#: Used in place of a shard's name. No shard has this name.
WHOLE_JOB: Final = "#"
# Expressions name the attributes indirectly, because DynamoDB reserves some of these words.
_LATER: Final = (
    "attribute_not_exists(#job) OR #attempt < :attempt OR (#attempt = :attempt AND #answered < :answered)"
)
_NAMES: Final = {f"#{name}": name for name in ("job", "attempt", "answered")}
# As long as the results of jobs in the bucket are useful.
_KEPT_SECONDS: Final = 30 * 24 * 3600

#: An item in the format of DynamoDB's low-level API.
Item = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class JobSize:
    """Size and prices of a job, known once it is planned."""

    total: int = 0
    """Requests, including invalid ones."""
    invalid: int = 0
    """Invalid requests."""
    usd_per_million_input_tokens: float = 0.0
    usd_per_million_output_tokens: float = 0.0
    """`usd_per_million_input_tokens`, `usd_per_million_output_tokens`: Price of a million tokens, in
    dollars."""

    def item(self, job: str, *, now: float) -> dict[str, Any]:
        return {
            **_key(job, WHOLE_JOB),
            **_numbers(asdict(self)),
            **_numbers({EXPIRY_ATTRIBUTE: int(now) + _KEPT_SECONDS}),
        }

    @classmethod
    def of(cls, item: Item) -> JobSize:
        return cls(
            total=_number(item, "total"),
            invalid=_number(item, "invalid"),
            usd_per_million_input_tokens=float(item["usd_per_million_input_tokens"]["N"]),
            usd_per_million_output_tokens=float(item["usd_per_million_output_tokens"]["N"]),
        )


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """Progress of a shard: the counts of its committed lines."""

    attempt: int
    """Attempt at the job."""
    completed: int = 0
    """Lines with an answer."""
    failed: int = 0
    """Lines that ended with an error."""
    expired: int = 0
    """Failed lines that expired at the attempt's deadline. The next attempt runs them."""
    usage: Usage = field(default_factory=Usage)
    """Tokens that the endpoint counted."""

    @property
    def answered(self) -> int:
        """Lines that have ended."""
        return self.completed + self.failed

    def write(self, job: str, shard: str, *, now: float) -> dict[str, Any]:
        """Return the options of the call that writes the item. The write replaces only an earlier item.

        job, shard: The job's identifier and the shard's name.
        """
        values = {**asdict(self), **asdict(self.usage), "answered": self.answered}
        del values["usage"]
        return {
            "Item": {**_key(job, shard), **_numbers({**values, EXPIRY_ATTRIBUTE: int(now) + _KEPT_SECONDS})},
            "ConditionExpression": _LATER,
            "ExpressionAttributeNames": _NAMES,
            "ExpressionAttributeValues": _numbers({":attempt": self.attempt, ":answered": self.answered}),
        }

    @classmethod
    def of(cls, item: Item) -> ShardProgress:
        tokens = (_number(item, name) for name in ("input_tokens", "cached_tokens", "output_tokens"))
        return cls(
            attempt=_number(item, "attempt"),
            completed=_number(item, "completed"),
            failed=_number(item, "failed"),
            expired=_number(item, "expired"),
            usage=Usage(*tokens),
        )


def turn_item(model: str, holder: str, *, now: float, until: float) -> dict[str, Any]:
    """Return the options of the call that takes the turn. It is refused while another process has it.

    holder: Identifier of the process.
    now, until: The time, and when the turn ends, in seconds since 1970.
    """
    numbers = _numbers({"until": until, EXPIRY_ATTRIBUTE: int(until) + _KEPT_SECONDS})
    return {
        "Item": {**_key(suspects_of_model(model), WHOLE_JOB), "holder": {"S": holder}, **numbers},
        "ConditionExpression": "attribute_not_exists(#holder) OR #holder = :holder OR #until <= :now",
        "ExpressionAttributeNames": {"#holder": "holder", "#until": "until"},
        "ExpressionAttributeValues": {":holder": {"S": holder}, **_numbers({":now": now})},
    }


def _key(job: str, shard: str) -> dict[str, Any]:
    return {JOB_ATTRIBUTE: {"S": job}, SHARD_ATTRIBUTE: {"S": shard}}


def _numbers(values: Mapping[str, float]) -> dict[str, Any]:
    return {name: {"N": str(value)} for name, value in values.items()}


def _number(item: Item, name: str) -> int:
    return int(item[name]["N"])
