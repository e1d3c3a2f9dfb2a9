"""Digests of a shard's prompts. A signal names its prompt by the digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final

from batch.contracts.shard import ShardLine

_BYTES: Final = 16


class PromptDigests:
    """Half a SHA-256 for each line of a shard. It covers the body, and the addresses of its images.

    The digests take 16 bytes per line. All of them are in memory, because answers come in the order of
    completion.

    lines: Lines of the shard's file, in order.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._digests = bytearray()
        for line in lines:
            read = ShardLine.from_json(line)
            asked = {"body": read.body, "images": read.images} if read.images else read.body
            self._digests += hashlib.sha256(_canonical(asked)).digest()[:_BYTES]

    def of(self, ordinal: int) -> str:
        return self._digests[ordinal * _BYTES : (ordinal + 1) * _BYTES].hex()


def _canonical(value: Any) -> bytes:
    """Return the same bytes for equal values, regardless of the order of keys."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "surrogatepass")
