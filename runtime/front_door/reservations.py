"""What stands in the header of a reservation, and in Envoy's log: all that its settlement needs.

The replica signs it, so that no line that somebody else has made is settled. Its key stands in the state
folder, and so survives a restart.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from front_door.ledger import Reservation
from inference_contracts.door_configuration import DoorPrices

_KEY_BYTES: Final = 32
_DIGEST_BYTES: Final = 12
_FIELDS: Final = 14


@dataclass(frozen=True, slots=True)
class Promise:
    """A request that was admitted, and how it is charged."""

    id: str
    """Its identifier in the ledger. Not that of the request, which callers choose."""
    team: Reservation
    """Reservation in the counters of team, project and key."""
    model: Reservation
    """Reservation in the counter of the model. `NOT_RESERVED` if the model has no budget."""
    nano: int
    """What is reserved."""
    input_tokens: int
    output_tokens: int
    images: int
    """`input_tokens`, `output_tokens`, `images`: The bounds behind it."""
    prices: DoorPrices


class Signer:
    """Writes and reads headers of reservations.

    key: Secret of the replica.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def write(self, promise: Promise) -> str:
        """Return the header."""
        team, model, prices = promise.team, promise.model, promise.prices
        text = (
            f"{promise.id}.{team.generation}.{team.day}.{team.month}.{team.minute}."
            f"{model.generation}.{model.minute}.{promise.nano}."
            f"{promise.input_tokens}.{promise.output_tokens}.{promise.images}."
            f"{prices.input_token}.{prices.output_token}.{prices.image}"
        )
        return f"{text}.{self._digest(text)}"

    def read(self, header: str) -> Promise | None:
        """Return what a header says. None if this replica has not written it."""
        text, _, digest = header.rpartition(".")
        fields = text.split(".")
        if len(fields) != _FIELDS or not hmac.compare_digest(digest, self._digest(text)):
            return None
        identifier, generation, day, month, minute, of_model, model_minute, *rest = fields
        nano, input_tokens, output_tokens, images, *prices = map(int, rest)
        return Promise(
            identifier,
            Reservation(generation, int(day), int(month), int(minute)),
            Reservation(of_model, int(day), int(month), int(model_minute)),
            *(nano, input_tokens, output_tokens, images),
            DoorPrices(*prices),
        )

    def _digest(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=_DIGEST_BYTES).hexdigest()


def signing_key(folder: Path) -> bytes:
    """Return the key of the replica. The first call makes it."""
    file = folder / "signing-key"
    if not file.exists():
        new = folder / "signing-key.new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(os.urandom(_KEY_BYTES))
        new.rename(file)
    return file.read_bytes()
