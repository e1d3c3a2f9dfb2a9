"""API keys of the front door: their form, their hash, and what is stored of them.

`inference_contracts.door_key_table` has the table of the records.

A key has 256 random bits, so one SHA-256 protects it at rest: a slow hash protects passwords, which can be
guessed (NIST SP 800-63B, 3.1.1.2: look-up secrets with at least 112 bits may be stored with a fast approved
hash).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Final

from inference_contracts.door_configuration import DoorBudget
from inference_contracts.json_record import JsonRecord
from inference_contracts.platform_keys import PlatformCaller

#: Begins every key, so that scanners of repositories find one.
PREFIX: Final = "ibk"
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_LENGTH: Final = 12
_SECRET_LENGTH: Final = 43
_FORM: Final = re.compile(rf"{PREFIX}-([0-9A-Za-z]{{{_ID_LENGTH}}})-[0-9A-Za-z]{{{_SECRET_LENGTH}}}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made. It is shown once and stored nowhere."""

    id: str
    """Its identifier, which may be shown and logged."""
    secret: str
    """The whole key, which callers send."""


def new_key(key_id: str | None = None) -> NewKey:
    """Make a secret with 256 random bits.

    key_id: Identifier of the key that gets it. None for a new one.
    """
    identifier = key_id or "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
    return NewKey(identifier, f"{PREFIX}-{identifier}-{secret}")


def key_id(secret: str) -> str | None:
    """Return the identifier of a key. None if the text does not have the form of one."""
    match = _FORM.fullmatch(secret)
    return match[1] if match else None


def key_hash(secret: str) -> str:
    """Return what is stored of a key: its SHA-256 in hexadecimal digits."""
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class KeyRecord(JsonRecord):
    """An API key as the table has it. Times are seconds since 1970."""

    id: str
    team: str
    project: str | None
    """Project of its requests. None if the caller may name one."""
    hashes: tuple[str, ...]
    """SHA-256 of each secret that is valid: two while a rotated key overlaps with its successor."""
    old_until: int | None
    """Time until which all hashes but the last are valid. None without a rotation."""
    models: tuple[str, ...] | None
    """Public names of the models that it may use. None for all of its team."""
    created: int
    created_by: str
    """ARN of the principal that made it."""
    expires: int
    revoked: int | None
    """Time of its revocation. None while it is valid."""
    change: int
    """Number of its last change among all changes of its bucket in the table. Replicas read what is new."""
    name: str = ""
    """What people call it."""
    budget: DoorBudget | None = None
    """Limits of this key, besides those of the platform's configuration."""
    caller: PlatformCaller | None = None
    """Part of the platform that it belongs to. None for keys of people and their programs."""

    def hashes_at(self, now: float) -> tuple[str, ...]:
        """Return the hashes of the secrets that are valid at a time: none if it has expired or is revoked.

        now: Seconds since 1970.
        """
        if self.revoked is not None or now >= self.expires:
            return ()
        overlaps = self.old_until is not None and now < self.old_until
        return self.hashes if overlaps else self.hashes[-1:]
