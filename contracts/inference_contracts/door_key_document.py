"""API keys as `blueprints keys` and the API of keys show them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from inference_contracts.door_configuration import NANO, DoorBudget
from inference_contracts.door_key_acts import KeyChange
from inference_contracts.door_keys import KeyRecord


def key_state(record: KeyRecord, now: float) -> str:
    """Return ``valid``, ``expired`` or ``revoked``.

    now: Seconds since 1970.
    """
    if record.revoked is not None:
        return "revoked"
    return "valid" if record.hashes_at(now) else "expired"


def key_document(record: KeyRecord, now: float) -> dict[str, Any]:
    """Return a key without its hashes. Times are ISO 8601 in UTC.

    now: Seconds since 1970.
    """
    overlaps = record.old_until is not None and len(record.hashes_at(now)) > 1
    return {
        "id": record.id,
        "name": record.name,
        "caller": record.caller,
        "team": record.team,
        "project": record.project,
        "models": None if record.models is None else list(record.models),
        "state": key_state(record, now),
        "createdAt": _time(record.created),
        "createdBy": record.created_by,
        "expiresAt": _time(record.expires),
        "revokedAt": _time(record.revoked),
        "oldSecretUntil": _time(record.old_until) if overlaps else None,
        "budget": None if record.budget is None else _budget_document(record.budget),
    }


def change_document(change: KeyChange, now: float) -> dict[str, Any]:
    """Return a key that was changed, with its new secret if it got one.

    now: Seconds since 1970.
    """
    secret = {} if change.secret is None else {"secret": change.secret}
    return {**key_document(change.record, now), **secret}


def _budget_document(budget: DoorBudget) -> dict[str, Any]:
    return {
        "usdPerDay": _usd(budget.nano_per_day),
        "usdPerMonth": _usd(budget.nano_per_month),
        "requestsPerMinute": budget.requests_per_minute,
        "tokensPerMinute": budget.tokens_per_minute,
        "requestsAtOnce": budget.requests_at_once,
    }


def _usd(nano: int | None) -> float | None:
    return None if nano is None else nano / NANO


def _time(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
