"""The steps of a rotation, in the order in which AWS Secrets Manager asks for them.

"If any rotation step fails, Secrets Manager retries the entire rotation process multiple times" (AWS Secrets
Manager User Guide, "Rotation by Lambda function"), so each step may come again, late, or never:

============== ============================================ ===============================================
Step           What it does                                 If it comes twice, or the function fails in it
============== ============================================ ===============================================
`createSecret` writes a new key for each team into the      the keys are made once, because they are in the
               secret (`AWSPENDING`), then their hashes     secret first; hashes that the table has are
               into the table: both keys are valid          left alone
`setSecret`    nothing: the table is what callers are
               compared with
`testSecret`   compares secret and table                    changes nothing
`finishSecret` makes the new keys those that programs read  the label is moved once, and the old keys end a
               (`AWSCURRENT`), and ends the old ones after  day after the first time
               a day
============== ============================================ ===============================================

A rotation that never ends leaves both keys valid until they expire, so the programs go on with the old ones.
Until the last step, `old_until` of a key is the time at which it expires: so replicas of the door see which
rotation has not ended (`front_door.late_keys`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from inference_contracts.door_audit import Act, Actor, AuditLog
from inference_contracts.door_key_acts import write_key
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import KeyRecord, key_hash, key_id, new_key
from inference_contracts.platform_keys import (
    EXPIRY_DAYS,
    OVERLAP_HOURS,
    OWNER_TAG,
    KeyOwner,
    read_keys,
    write_keys,
)

_CURRENT: Final = "AWSCURRENT"
_PENDING: Final = "AWSPENDING"
_DAY_SECONDS: Final = 24 * 3600

_logger = logging.getLogger(__name__)


class RotationError(Exception):
    """A step that cannot be done. Secrets Manager tries the rotation again."""


@dataclass(frozen=True, slots=True)
class KeyRotation:
    """Rotates the keys of the platform's own programs."""

    secrets: Any
    """boto3's client of Secrets Manager."""
    table: KeyTable
    audit: AuditLog
    """`table`, `audit`: Where keys and the record of administration are."""
    owners: Mapping[str, KeyOwner]
    """Programs that have keys, by the tag of their secret."""

    def run(self, step: str, secret: str, token: str, *, actor: Actor, now: float) -> None:
        """Do a step.

        step: One of the four.
        secret: ARN of the secret.
        token: Identifier of its new version.
        actor: Who acts: the function.
        now: Seconds since 1970.
        Raises RotationError if it cannot be done.
        """
        described = self.secrets.describe_secret(SecretId=secret)
        stages: Mapping[str, list[str]] = described.get("VersionIdsToStages") or {}
        current = next((version for version, labels in stages.items() if _CURRENT in labels), None)
        if token not in stages or not {_CURRENT, _PENDING} & {*stages[token]}:
            raise RotationError(
                f"secret {secret}: version {token} is not one that is being rotated; nothing was done. Start "
                f"a rotation with 'aws secretsmanager rotate-secret --secret-id {secret}'"
            )
        work = _Step(self, secret, token, self._owner(described), actor, now)
        if step == "createSecret":
            work.create()
        elif step == "testSecret":
            work.test()
        elif step == "finishSecret":
            work.finish(current)
        elif step != "setSecret":
            raise RotationError(
                f"step {step!r}: allowed are createSecret, setSecret, testSecret and finishSecret"
            )

    def _owner(self, described: Mapping[str, Any]) -> KeyOwner:
        tags = {each["Key"]: each["Value"] for each in described.get("Tags") or ()}
        owner = self.owners.get(tags.get(OWNER_TAG, ""))
        if owner is None:
            raise RotationError(
                f"secret {described['ARN']}: its tag {OWNER_TAG} is {tags.get(OWNER_TAG)!r}, allowed are "
                f"{', '.join(self.owners)}; deploy the stack of the front door again"
            )
        return owner


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of one rotation."""

    rotation: KeyRotation
    secret: str
    token: str
    owner: KeyOwner
    actor: Actor
    now: float

    def create(self) -> None:
        """Make the keys, and let the front door know them."""
        current = self._keys(VersionStage=_CURRENT) or {}
        keys = self._keys(VersionId=self.token)
        if keys is None:
            keys = {team: self._new_key(current.get(team)) for team in self.owner.teams}
            self.rotation.secrets.put_secret_value(
                SecretId=self.secret,
                ClientRequestToken=self.token,
                SecretString=write_keys(keys),
                VersionStages=[_PENDING],
            )
        for team, key in keys.items():
            self._admit(team, key, current.get(team))

    def test(self) -> None:
        """Check that the front door knows the keys."""
        for team, key in (self._keys(VersionId=self.token) or {}).items():
            record = self._record(key)
            if record.revoked is not None:
                # Somebody has just done that. The next rotation makes another key.
                _logger.warning("key %s of team %s is revoked", record.id, team)
            elif key_hash(key) not in record.hashes_at(self.now):
                raise RotationError(f"key {record.id} of team {team}: the table does not have its new secret")

    def finish(self, current: str | None) -> None:
        """Let programs read the new keys, and end the old ones after the overlap."""
        keys = self._keys(VersionId=self.token) or {}
        if current != self.token:
            self.rotation.secrets.update_secret_version_stage(
                SecretId=self.secret,
                VersionStage=_CURRENT,
                MoveToVersionId=self.token,
                **({"RemoveFromVersionId": current} if current else {}),
            )
        until = int(self.now) + OVERLAP_HOURS * 3600
        for key in keys.values():
            record = self._record(key)
            if record.revoked is None and record.old_until is not None and record.old_until > until:
                self._write("rotate", record, replace(record, old_until=until))

    def _keys(self, **version: str) -> Mapping[str, str] | None:
        """Return the keys of a version. None if it has no value, or that of a secret that was just made."""
        try:
            found = self.rotation.secrets.get_secret_value(SecretId=self.secret, **version)
        except self.rotation.secrets.exceptions.ResourceNotFoundException:
            return None
        try:
            return read_keys(found["SecretString"])
        except ValueError:
            return None

    def _new_key(self, old: str | None) -> str:
        """Return a new secret of a team's key, or another key if that is not valid any more."""
        identifier = key_id(old) if old else None
        record = self.rotation.table.get(identifier) if identifier else None
        return new_key(identifier if record and record.hashes_at(self.now) else None).secret

    def _admit(self, team: str, key: str, old: str | None) -> None:
        """Write the hash of a key into the table, beside that of the key that its program has."""
        identifier = key_id(key) or ""
        before = self.rotation.table.get(identifier)
        expires = int(self.now) + EXPIRY_DAYS * _DAY_SECONDS
        if before is None:
            made = KeyRecord(
                id=identifier,
                team=team,
                project=None,
                hashes=(key_hash(key),),
                # Until the last step, as of a key that is rotated.
                old_until=expires,
                models=self.owner.models,
                created=int(self.now),
                created_by=self.actor.arn,
                expires=expires,
                revoked=None,
                change=0,
                name=self.owner.tag,
                caller=self.owner.caller,
            )
            self._write("create", None, made)
        elif before.revoked is None and key_hash(key) != before.hashes[-1]:
            kept = key_hash(old) if old and key_id(old) == identifier else before.hashes[-1]
            self._write(
                "rotate",
                before,
                replace(
                    before,
                    hashes=(kept, key_hash(key)),
                    # Until the last step: its program has the old key so long.
                    old_until=expires,
                    expires=expires,
                    models=self.owner.models,
                ),
            )

    def _record(self, key: str) -> KeyRecord:
        record = self.rotation.table.get(key_id(key) or "")
        if record is None:
            raise RotationError(f"secret {self.secret}: a key of version {self.token} is not in the table")
        return record

    def _write(self, act: Act, before: KeyRecord | None, after: KeyRecord) -> None:
        rotation = self.rotation
        change = write_key(
            rotation.table, rotation.audit, self.actor, act, before=before, after=after, now=self.now
        )
        if change.audit_problem is not None:
            _logger.error("the end of an act on key %s has no record: %s", after.id, change.audit_problem)
