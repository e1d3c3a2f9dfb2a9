"""Callers with an API key of the front door: files and jobs are then those of the key's team."""

from __future__ import annotations

import hmac
from collections.abc import Collection

from batch.authorizer.caller_identity import TokenError
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import KeyRecord, key_hash, key_id


class LimitedKeyError(Exception):
    """A key that may do less than its team. The message says what to do."""


def team_of_key(secret: str, table: KeyTable, limited: Collection[str], *, now: float) -> tuple[str, str]:
    """Return the identifier and the team of a key.

    A job is charged to its team with a key of batch, so the limits of the caller's key would not hold: a key
    with limits is refused.

    limited: Identifiers of keys that have budgets in the platform's file.
    now: Seconds since 1970.
    Raises TokenError if the key is not valid. Raises LimitedKeyError if it has limits.
    """
    identifier = key_id(secret)
    record = table.get(identifier) if identifier else None
    valid = record.hashes_at(now) if record else ()
    digest = key_hash(secret)
    if record is None or not any(hmac.compare_digest(digest, each) for each in valid):
        raise TokenError("it is no valid key of the front door")
    if limits := _limits(record, limited):
        raise LimitedKeyError(
            f"key {record.id} is limited to {limits}, and a job runs for its whole team; use a key of the "
            "team without these limits"
        )
    return record.id, record.team


def _limits(record: KeyRecord, limited: Collection[str]) -> str:
    found = {
        "its models": record.models is not None,
        f"the project {record.project!r}": record.project is not None,
        "a budget of its own": record.budget is not None or record.id in limited,
        f"the platform's own {record.caller}": record.caller is not None,
    }
    return " and ".join(name for name, limited in found.items() if limited)
