"""The record of administration of the front door: one object in S3 before each act, and one after it.

The first object says what is about to be done. Without it, nothing is done. The second one says how it ended.
An act without a second object was cut off: the table of keys tells whether it was done.

Objects are only added. Each is written with ``If-None-Match: *``, which the policy of the bucket demands
(Amazon S3 User Guide, "Enforce conditional writes on Amazon S3 buckets"), and Object Lock keeps them if the
blueprint says so.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol

from inference_contracts.door_keys import KeyRecord
from inference_contracts.json_record import JsonRecord

#: What the keys of all objects begin with. The day follows, as ``date=2026-11-29/``.
AUDIT_PREFIX: Final = "administration/"
#: Digits of a hash that a record has: enough to tell secrets apart.
_SHOWN_DIGITS: Final = 16

Act = Literal["create", "rotate", "revoke"]
#: Whether the act is about to happen, or how it ended.
Phase = Literal["begin", "done", "failed"]


class ObjectStore(Protocol):
    """The call of boto3's client of S3 that the record needs."""

    def put_object(self, **values: Any) -> Any:
        """Write an object."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who administers keys."""

    arn: str
    """ARN of the principal: for a role, of its session."""
    way: Literal["command", "api", "rotation"]
    """Whether `blueprints keys` or the API was used, or the function that rotates the platform's own keys."""


@dataclass(frozen=True, slots=True)
class AdministrationRecord(JsonRecord):
    """An act, or its end."""

    id: str
    """Identifier of the act. Its beginning and its end have the same."""
    time: str
    """Time by the clock of whoever acts, as ISO 8601 in UTC. S3 has the time at which it was written."""
    platform: str
    actor: str
    way: str
    """`platform`, `actor`, `way`: `metadata.name`, and the fields of `Actor`."""
    act: Act
    phase: Phase
    key: str
    team: str
    """`key`, `team`: Identifier of the key, and its team."""
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    """`before`, `after`: The key before and after the act. Of hashes, they have the first digits."""
    reason: str = ""
    """Why it failed."""


def shown_key(record: KeyRecord | None) -> dict[str, Any] | None:
    """Return a key as records of administration have it: with short hashes.

    record: The key. None if it does not exist.
    """
    if record is None:
        return None
    return {**record.to_values(), "hashes": [digits[:_SHOWN_DIGITS] for digits in record.hashes]}


@dataclass(frozen=True, slots=True)
class AuditLog:
    """Writes the record of administration."""

    client: ObjectStore
    """boto3's client of S3."""
    bucket: str
    platform: str
    """`bucket`, `platform`: Name of the bucket, and `metadata.name` of the platform."""

    def begin(
        self, actor: Actor, act: Act, *, before: KeyRecord | None, after: KeyRecord, now: float
    ) -> AdministrationRecord:
        """Write that an act is about to happen, and return the record.

        before, after: The key before and after it.
        now: Seconds since 1970.
        """
        record = AdministrationRecord(
            id=secrets.token_hex(16),
            time=datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds"),
            platform=self.platform,
            actor=actor.arn,
            way=actor.way,
            act=act,
            phase="begin",
            key=after.id,
            team=after.team,
            before=shown_key(before),
            after=shown_key(after),
        )
        self._write(record)
        return record

    def end(self, begun: AdministrationRecord, *, after: KeyRecord | None, reason: str = "") -> None:
        """Write how an act ended.

        begun: The record of its beginning.
        after: The key as it is now. None if nothing was done.
        reason: Why nothing was done.
        """
        phase: Phase = "failed" if after is None else "done"
        self._write(replace(begun, phase=phase, after=shown_key(after), reason=reason))

    def _write(self, record: AdministrationRecord) -> None:
        day, _, clock = record.time.partition("T")
        name = f"{AUDIT_PREFIX}date={day}/{clock[:12].replace(':', '')}-{record.id}-{record.phase}.json"
        self.client.put_object(
            Bucket=self.bucket,
            Key=name,
            Body=record.to_json().encode(),
            ContentType="application/json",
            IfNoneMatch="*",
        )
