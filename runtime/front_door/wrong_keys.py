"""Counts wrong API keys by address, so that who tries many is told to wait.

Guessing is hopeless: a key has 256 random bits. So a valid key always passes, whatever came before from its
address. Otherwise somebody who shares an address with others, or a program that still has an old secret,
could lock them out.

The counts are those of one replica. Their number is bounded: the address that was quiet for the longest time
is forgotten first.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

#: Wrong keys that an address may send within a window, and its length.
MOST_WRONG: Final = 20
WINDOW_SECONDS: Final = 60.0
#: Addresses that are remembered.
MOST_ADDRESSES: Final = 10_000
#: Bits of an IPv6 address that belong to one network: a host has the rest to itself (RFC 4291, 2.5.4).
_NETWORK_BITS: Final = 64
_LONGEST: Final = 64


@dataclass(slots=True)
class _Window:
    began: float
    wrong: int = 0


class WrongKeys:
    """Wrong keys by address.

    clock: A clock that only goes forward, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: OrderedDict[str, _Window] = OrderedDict()

    def count(self, sender: bytes) -> int | None:
        """Count a wrong key, and return the seconds that its sender is told to wait. None if it sent few.

        sender: Address of the sender, as Envoy knows it.
        """
        address, now = _network(sender), self._clock()
        window = self._windows.get(address)
        if window is None or now - window.began >= WINDOW_SECONDS:
            window = self._windows[address] = _Window(now)
        self._windows.move_to_end(address)
        if len(self._windows) > MOST_ADDRESSES:
            self._windows.popitem(last=False)
        window.wrong += 1
        if window.wrong <= MOST_WRONG:
            return None
        return max(1, math.ceil(window.began + WINDOW_SECONDS - now))


def _network(sender: bytes) -> str:
    """Return an address; of an IPv6 address, its network."""
    text = sender[:_LONGEST].decode("ascii", "replace")
    try:
        address = ip_address(text)
    except ValueError:
        return text
    if isinstance(address, IPv6Address):
        return str(IPv6Address(int(address) >> _NETWORK_BITS << _NETWORK_BITS))
    return str(address)
