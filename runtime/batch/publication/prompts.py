"""Digests of what a shard asked, by which a signal tells what it is an answer to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from batch.contracts.description import PromptTemplate
from batch.contracts.shard import ShardLine

_BYTES: Final = 16


class PromptDigests:
    """Half a SHA-256 for each line of a shard; with a template, of template and row.

    They are kept in 16 bytes a line, for answers come in the order in which they were finished.

    Parameters
    ----------
    lines
        The lines of the shard's file, in their order.
    template
        How rows become requests; None where lines have bodies.
    """

    def __init__(self, lines: Iterable[bytes], template: PromptTemplate | None) -> None:
        shape = None if template is None else asdict(template)
        self._digests = bytearray()
        for line in lines:
            read = ShardLine.from_json(line)
            asked = read.body if template is None else {"template": shape, "row": read.row}
            self._digests += hashlib.sha256(_canonical(asked)).digest()[:_BYTES]

    def of(self, ordinal: int) -> str:
        """Return the digest of a line in hex.

        Parameters
        ----------
        ordinal
            Its place within the shard, from 0.
        """
        return self._digests[ordinal * _BYTES : (ordinal + 1) * _BYTES].hex()


def _canonical(value: Any) -> bytes:
    """Return the same bytes for what is the same, whatever the order of its keys."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "surrogatepass")
