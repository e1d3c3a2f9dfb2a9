"""One signal, and its form in Valkey.

Key ``signal:<name>:<key>``, a hash:

======= ==============================================================
Field   Value
======= ==============================================================
``v``   version, a whole number; a write with a lower or equal one loses
``d``   the record as JSON: ``value``, ``version``, ``model``,
        ``promptHash``, ``time``, ``expires``
======= ==============================================================

Valkey deletes it at ``expires``. A client without this library reads it with
``HGET signal:<name>:<key> d``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

#: Names of signals. The colon that follows ends the name.
NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")
_LONGEST_KEY_BYTES: Final = 1024
# Lua compares versions as doubles.
_HIGHEST_VERSION: Final = 2**53
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))


class InvalidSignalError(ValueError):
    """A signal that cannot be stored. The message contains the value and the allowed values."""


@dataclass(frozen=True, slots=True)
class SignalRecord:
    """The answer of a model about a thing, such as a product."""

    name: str
    """Name of the signal, in kebab-case."""
    key: str
    """Identifier of the thing; 1 to 1,024 bytes of UTF-8."""
    value: str
    """Answer of the model."""
    version: int
    """Orders the values of one key; for example the time of the request in milliseconds."""
    model: str
    """Name of the model."""
    prompt_hash: str
    """Digest of the prompt."""
    time: int
    expires: int
    """`time`, `expires`: Time of the answer, and time from which it is no longer valid; seconds since
    1970."""

    def __post_init__(self) -> None:
        """Check that the store can hold the signal.

        Raises
        ------
        InvalidSignalError
            If name, key or version are out of bounds.
        """
        check_name(self.name)
        size = len(self.key.encode("utf-8", "replace"))
        if not 1 <= size <= _LONGEST_KEY_BYTES:
            raise InvalidSignalError(f"key: must have 1 to {_LONGEST_KEY_BYTES} bytes; got {size}")
        if not 0 <= self.version < _HIGHEST_VERSION:
            raise InvalidSignalError(f"version: must be 0 to below 2^53; got {self.version}")

    def to_json(self) -> str:
        """Return the record as it is stored."""
        return _ENCODER.encode(
            {
                "value": self.value,
                "version": self.version,
                "model": self.model,
                "promptHash": self.prompt_hash,
                "time": self.time,
                "expires": self.expires,
            }
        )

    @classmethod
    def from_json(cls, name: str, key: str, text: str | bytes) -> SignalRecord:
        """Read a record.

        Parameters
        ----------
        name, key
            Name and key that the record is stored under.
        text
            The record.

        Raises
        ------
        InvalidSignalError
            If the text is not a record.
        """
        try:
            values = json.loads(text)
            return cls(
                name=name,
                key=key,
                value=values["value"],
                version=values["version"],
                model=values["model"],
                prompt_hash=values["promptHash"],
                time=values["time"],
                expires=values["expires"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidSignalError(f"record of {name}, {key[:80]}: cannot be read: {error}") from error


def check_name(name: str) -> None:
    """Check that a name is valid, so that its keys cannot overlap with those of another name.

    Parameters
    ----------
    name
        Name of a signal.

    Raises
    ------
    InvalidSignalError
        If the name is not valid.
    """
    if not NAME.fullmatch(name):
        raise InvalidSignalError(f"name: must match {NAME.pattern}; got {name[:80]!r}")


def storage_key(name: str, key: str) -> str:
    """Return the key in Valkey.

    Parameters
    ----------
    name, key
        Name and key of the signal.
    """
    return f"signal:{name}:{key}"
