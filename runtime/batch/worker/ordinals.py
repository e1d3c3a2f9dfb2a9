"""A set of whole numbers from 0, with one bit for each."""

from __future__ import annotations


class Ordinals:
    """Ordinals of the lines of a shard."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, ordinal: int) -> bool:
        byte = ordinal >> 3
        return byte < len(self._bits) and bool(self._bits[byte] & (1 << (ordinal & 7)))

    def add(self, ordinal: int) -> bool:
        """Add a number, and return whether it was new."""
        if ordinal in self:
            return False
        byte = ordinal >> 3
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1))  # at least doubles, so copies are rare
        self._bits[byte] |= 1 << (ordinal & 7)
        self._count += 1
        return True
