"""How far a job is, in a table of its own: an item a shard, which its worker writes, and one of the job.

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

An item is written whole and never added to, so writing it twice is harmless; and only over an earlier one, so
a worker that hung and woke changes nothing. Ten thousand items are about a megabyte: one or two pages of a
query, where the objects of as many shards would be thirty pages of a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from batch.contracts.shard import Usage

#: In place of a shard's name; no shard has it.
WHOLE_JOB: Final = "#"
# Attributes are named, for some are words that DynamoDB reserves.
_LATER: Final = (
    "attribute_not_exists(#job) OR #attempt < :attempt OR (#attempt = :attempt AND #answered < :answered)"
)
_NAMES: Final = {f"#{name}": name for name in ("job", "attempt", "answered")}
# As long as what jobs leave in the bucket is of use.
_KEPT_SECONDS: Final = 30 * 24 * 3600

#: An item as DynamoDB's own interface has it.
Item = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class JobSize:
    """What is known of a job once it is planned.

    Parameters
    ----------
    total
        Its requests, those included that are not valid.
    invalid
        Those that are not.
    usd_per_million_input_tokens, usd_per_million_output_tokens
        What a million tokens cost its team.
    """

    total: int = 0
    invalid: int = 0
    usd_per_million_input_tokens: float = 0.0
    usd_per_million_output_tokens: float = 0.0

    def item(self, job: str, *, now: float) -> dict[str, Any]:
        """Return the item.

        Parameters
        ----------
        job
            The job's identifier.
        now
            Seconds since 1970.
        """
        return {
            **_key(job, WHOLE_JOB),
            **_numbers(asdict(self)),
            **_numbers({"expires": int(now) + _KEPT_SECONDS}),
        }

    @classmethod
    def of(cls, item: Item) -> JobSize:
        """Read an item.

        Parameters
        ----------
        item
            One of `item`.
        """
        return cls(
            total=_number(item, "total"),
            invalid=_number(item, "invalid"),
            usd_per_million_input_tokens=float(item["usd_per_million_input_tokens"]["N"]),
            usd_per_million_output_tokens=float(item["usd_per_million_output_tokens"]["N"]),
        )


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """How far a shard is: what is committed of it.

    Parameters
    ----------
    attempt
        Attempt at the job.
    completed, failed
        Lines with an answer, and lines that ended as an error.
    expired
        Those of the failed that the attempt's deadline overtook; the next attempt runs them.
    usage
        What the endpoint counted.
    """

    attempt: int
    completed: int = 0
    failed: int = 0
    expired: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def answered(self) -> int:
        """Lines that have ended."""
        return self.completed + self.failed

    def write(self, job: str, shard: str, *, now: float) -> dict[str, Any]:
        """Return the options of the call that writes the item, over an earlier one alone.

        Parameters
        ----------
        job, shard
            The job's identifier and the shard's name.
        now
            Seconds since 1970.
        """
        values = {**asdict(self), **asdict(self.usage), "answered": self.answered}
        del values["usage"]
        return {
            "Item": {**_key(job, shard), **_numbers({**values, "expires": int(now) + _KEPT_SECONDS})},
            "ConditionExpression": _LATER,
            "ExpressionAttributeNames": _NAMES,
            "ExpressionAttributeValues": _numbers({":attempt": self.attempt, ":answered": self.answered}),
        }

    @classmethod
    def of(cls, item: Item) -> ShardProgress:
        """Read an item.

        Parameters
        ----------
        item
            One of `write`.
        """
        tokens = (_number(item, name) for name in ("input_tokens", "cached_tokens", "output_tokens"))
        return cls(
            attempt=_number(item, "attempt"),
            completed=_number(item, "completed"),
            failed=_number(item, "failed"),
            expired=_number(item, "expired"),
            usage=Usage(*tokens),
        )


def _key(job: str, shard: str) -> dict[str, Any]:
    return {"job": {"S": job}, "shard": {"S": shard}}


def _numbers(values: Mapping[str, float]) -> dict[str, Any]:
    return {name: {"N": str(value)} for name, value in values.items()}


def _number(item: Item, name: str) -> int:
    return int(item[name]["N"])
