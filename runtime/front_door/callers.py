"""Who asks: an API key, or a token that Envoy has checked."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from front_door.asked_request import RefusedError
from front_door.key_snapshot import KeySnapshot
from front_door.refusals import DoorRefusal
from inference_contracts import door_headers, principals
from inference_contracts.door_configuration import DoorBudget, DoorConfiguration, DoorModel
from inference_contracts.door_keys import key_hash, key_id
from inference_contracts.platform_keys import PlatformCaller

_AUTHORIZATION: Final = b"authorization"
#: Header of Anthropic's clients.
_API_KEY: Final = b"x-api-key"
_TOKEN: Final = door_headers.TOKEN.encode()
_BEARER: Final = b"bearer "
_ADDRESS: Final = door_headers.ADDRESS.encode()
#: The hash of no secret.
_NO_HASH: Final = "0" * 64
#: What a decision names.
_DECIDED: Final = tuple(
    name.encode() for name in (door_headers.TEAM, door_headers.PROJECT, door_headers.KEY, door_headers.CALLER)
)
#: Age of the snapshot of keys at which a revoked key could be admitted for too long: all keys are refused.
OLDEST_SNAPSHOT_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class DoorCaller:
    """Who asks, and what it may."""

    team: str
    project: str | None
    key: str | None
    """Identifier of the API key."""
    subject: str | None
    """Subject of the token."""
    models: frozenset[str] | None
    """Public names of the models that it may use. None for all of its team."""
    budget: DoorBudget | None = None
    """Limits that the key has of its own."""
    caller: PlatformCaller | None = None
    """Part of the platform that asks."""

    @property
    def name(self) -> str:
        """What conversations without a name are told apart by."""
        return self.key or self.subject or self.team

    def may_use(self, model: DoorModel) -> bool:
        """Return whether it may ask a model.

        A part of the platform has models of its own, which nobody else sees, and may use those that its key
        names. It may use no other.
        """
        if model.caller != self.caller or (model.teams is not None and self.team not in model.teams):
            return False
        return (self.models is None and self.caller is None) or model.name in (self.models or ())


class Callers:
    """Finds out who asks.

    clock: Seconds since 1970.
    """

    def __init__(
        self,
        configuration: DoorConfiguration,
        keys: KeySnapshot,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys, self._clock = keys, clock
        self._admits_keys, self._reads_keys = configuration.api_keys, configuration.reads_keys
        self._issuers = {(each.issuer, each.audience): each for each in configuration.issuers}
        self._teams = {team.name for team in configuration.teams}
        self._principals = {
            principals.canonical(arn): team.name for team in configuration.teams for arn in team.principals
        }

    def identify(self, headers: Mapping[bytes, bytes]) -> DoorCaller:
        """Return who asks. Raises RefusedError if nobody is known."""
        token = headers.get(_TOKEN)
        if token:
            return self._of_token(token)
        given = headers.get(_AUTHORIZATION, b"")
        secret = (
            given[len(_BEARER) :] if given[: len(_BEARER)].lower() == _BEARER else headers.get(_API_KEY, b"")
        )
        if not secret:
            message = "The request has no API key. Send 'Authorization: Bearer KEY'."
            raise RefusedError(DoorRefusal(401, "invalid_api_key", message))
        return self._of_key(secret.decode("ascii", "replace").strip(), headers.get(_ADDRESS, b""))

    def again(self, headers: Mapping[bytes, bytes]) -> DoorCaller:
        """Return the caller that a decision has named in its headers."""
        team, project, key, subject = (headers.get(name, b"").decode() or None for name in _DECIDED)
        record = self._keys.get(key) if key else None
        models = None if record is None or record.models is None else frozenset(record.models)
        return DoorCaller(team or "", project, key, subject, models, caller=record.caller if record else None)

    def _of_key(self, secret: str, address: bytes) -> DoorCaller:
        identifier = key_id(secret) if self._reads_keys else None
        if identifier is None:
            message = "This is no API key or token of this platform. Ask its owner for one."
            raise self._wrong(message, address)
        if self._keys.age_seconds > OLDEST_SNAPSHOT_SECONDS:
            message = "API keys cannot be checked now. Ask again in some seconds."
            raise RefusedError(DoorRefusal(503, "keys_unavailable", message, retry_after=5))
        record = self._keys.get(identifier)
        if record and record.caller is None and not self._admits_keys:
            record = None
        valid = record.hashes_at(self._clock()) if record else ()
        digest = key_hash(secret)
        # Every key takes the same time: two hashes are compared, each in constant time, also for a key that
        # does not exist.
        same = [hmac.compare_digest(digest, each) for each in (*valid, _NO_HASH, _NO_HASH)[:2]]
        if record is None or not any(same):
            message = (
                "The API key is not valid: it is unknown, revoked or expired. Ask its owner for another."
            )
            raise self._wrong(message, address)
        models = None if record.models is None else frozenset(record.models)
        return DoorCaller(record.team, record.project, record.id, None, models, record.budget, record.caller)

    def _wrong(self, message: str, address: bytes) -> RefusedError:
        """Return the refusal of a wrong key: another one for an address that sends many."""
        wait = self._keys.wrong.count(address)
        if wait is None:
            return RefusedError(DoorRefusal(401, "invalid_api_key", message))
        many = f"{message} Too many wrong keys came from this address."
        return RefusedError(DoorRefusal(429, "too_many_wrong_keys", many, retry_after=wait))

    def _of_token(self, payload: bytes) -> DoorCaller:
        claims = _claims(payload)
        audiences = claims.get("aud", ())
        audiences = [audiences] if isinstance(audiences, str) else audiences
        found = [
            issuer
            for audience in audiences
            if isinstance(audience, str) and (issuer := self._issuers.get((str(claims.get("iss")), audience)))
        ]
        if not found:
            message = "The token is of an issuer or an audience that this platform does not accept."
            raise RefusedError(DoorRefusal(401, "invalid_token", message))
        issuer, subject = found[0], str(claims.get("sub", ""))
        value = claims.get(issuer.team_claim)
        if issuer.is_sts:
            principal = principals.canonical(subject)
            team = self._principals.get(principal) if principal else None
        else:
            team = value if isinstance(value, str) and value in self._teams else None
        if team is None:
            message = (
                f"No team has the principal {subject[:200]!r}."
                if issuer.is_sts
                else f"The claim {issuer.team_claim!r} of the token names no team of this platform."
            )
            raise RefusedError(
                DoorRefusal(403, "unknown_team", f"{message} Ask the platform's owner to add it.")
            )
        return DoorCaller(team, None, None, subject, None)


def _claims(payload: bytes) -> dict[str, Any]:
    """Return the claims of a token that Envoy has checked and passed on."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + b"=" * (-len(payload) % 4)))
    except (ValueError, binascii.Error):
        claims = None
    if not isinstance(claims, dict):
        raise RefusedError(
            DoorRefusal(401, "invalid_token", "The token has no readable claims. Get another.")
        )
    return claims
